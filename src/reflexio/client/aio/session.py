"""A client bound to one session: every call that takes a session takes this one."""

import functools
import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reflexio.client.aio import AsyncReflexioClient


class SessionClient:
    """What `for_session` returns. It shares connection, key and cache with its client.

    >>> chat = client.for_session("order-42")  # doctest: +SKIP
    >>> chat.publish_interaction("user-1", [{"content": "Where is my order?"}])  # doctest: +SKIP
    """

    def __init__(self, client: "AsyncReflexioClient", session_id: str) -> None:
        if not session_id.strip():
            raise ValueError("session_id must not be blank")
        self.client = client
        self.session_id = session_id.strip()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.client, name)
        if not callable(method) or "session_id" not in inspect.signature(method).parameters:
            return method

        @functools.wraps(method)
        def bound(*args: Any, **values: Any) -> Any:
            if values.get("session_id", self.session_id) != self.session_id:
                raise ValueError(f"this client is bound to session {self.session_id!r}")
            return method(*args, **{**values, "session_id": self.session_id})

        return bound
