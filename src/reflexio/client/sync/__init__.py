# Generated from client/aio/__init__.py by scripts/make_sync_client.py. Change that file and run `make format`.
"""The synchronous client."""

import functools
import inspect
from typing import Any

from reflexio.client.sync.interactions import InteractionCalls
from reflexio.client.sync.learnings import LearningCalls, OutcomeCalls, ReviewCalls
from reflexio.client.sync.operations import GenerationCalls, OperationCalls, OptimisationCalls, SettingCalls
from reflexio.client.sync.search import SearchCalls

__all__ = ["ReflexioClient", "SessionClient"]


class ReflexioClient(
    InteractionCalls,
    LearningCalls,
    OutcomeCalls,
    SearchCalls,
    SettingCalls,
    GenerationCalls,
    OptimisationCalls,
    OperationCalls,
    ReviewCalls,
):
    """Speaks to a Reflexio server.

    Without arguments it reads REFLEXIO_URL and REFLEXIO_API_KEY, and else expects a server on this machine.
    """

    def for_session(self, session_id: str) -> "SessionClient":
        """This client, bound to one session: every call that takes `session_id` gets this one."""
        return SessionClient(self, session_id)


class SessionClient:
    """What `for_session` returns. It shares connection, key and cache with its client.

    >>> chat = client.for_session("order-42")  # doctest: +SKIP
    >>> chat.publish_interaction("user-1", [{"content": "Where is my order?"}])  # doctest: +SKIP
    """

    def __init__(self, client: ReflexioClient, session_id: str) -> None:
        self.client = client
        self.session_id = (session_id or "").strip()
        if not self.session_id:
            raise ValueError("session_id must not be blank")

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.client, name)
        if not callable(method):
            return method
        signature = inspect.signature(method)
        if "session_id" not in signature.parameters:
            return method

        @functools.wraps(method)
        def bound(*args: Any, **values: Any) -> Any:
            arguments = signature.bind_partial(*args, **values).arguments
            if arguments.get("request") is not None:
                arguments["request"] = self._with_session(arguments["request"])
            arguments["session_id"] = self._check(arguments.get("session_id"))
            return method(**arguments)

        setattr(self, name, bound)  # the next access finds it without __getattr__
        return bound

    def _with_session(self, request: Any) -> Any:
        if isinstance(request, dict):
            return {**request, "session_id": self._check(request.get("session_id"))}
        return request.model_copy(update={"session_id": self._check(request.session_id)})

    def _check(self, session_id: str | None) -> str:
        if session_id not in (None, self.session_id):
            raise ValueError(f"this client is bound to session {self.session_id!r}")
        return self.session_id
