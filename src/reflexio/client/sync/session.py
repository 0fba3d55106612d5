# Generated from client/aio/session.py by scripts/make_sync_client.py. Change that file and run `make format`.
"""A client bound to one session: every call that takes a session takes this one."""

import functools
import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reflexio.client.sync import ReflexioClient


class SessionClient:
    """What `for_session` returns. It shares connection, key and cache with its client.

    >>> chat = client.for_session("order-42")  # doctest: +SKIP
    >>> chat.publish_interaction("user-1", [{"content": "Where is my order?"}])  # doctest: +SKIP
    """

    def __init__(self, client: "ReflexioClient", session_id: str) -> None:
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
            given = signature.bind_partial(*args, **values).arguments
            if given.get("request") is not None:
                given["request"] = self._with_session(given["request"])
            given["session_id"] = self._own(given.get("session_id"))
            return method(**given)

        setattr(self, name, bound)  # found at once the next time
        return bound

    def _with_session(self, request: Any) -> Any:
        """A whole question is asked about this session only."""
        if isinstance(request, dict):
            return {**request, "session_id": self._own(request.get("session_id"))}
        return request.model_copy(update={"session_id": self._own(request.session_id)})

    def _own(self, named: str | None) -> str:
        if named not in (None, self.session_id):
            raise ValueError(f"this client is bound to session {self.session_id!r}")
        return self.session_id
