"""What a connection may cost before anybody knows who speaks: bytes of a head, seconds for each phase, a place.

uvicorn limits only how long a connection may be idle between requests, and any byte resets that. Here one watch
looks at all connections every second; a request costs a few assignments.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from reflexio.server.problems import MEDIA_TYPE, TITLES

MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 256
SLOWEST_BODY = 16 * 1024
"""Bytes a second that a body must keep up after its first `body_seconds`."""

TOO_MUCH = f"The head of a request has at most {MAX_HEAD_BYTES:,} bytes and {MAX_HEADERS} headers."
TOO_SLOW = "The request did not arrive in time."
TOO_MANY = "Too many connections are open. Try again later; the operator can raise REFLEXIO_MAX_CONNECTIONS."


@dataclass(frozen=True)
class ConnectionLimits:
    """Seconds that each phase of a connection may take, and the number of connections.

    head: from the connection, or from the first byte of a later request, to the end of the head. body: for a body,
    and more while it arrives steadily. idle: between requests; longer than clients keep a connection, so that no call
    meets a closing one. drain: for the rest of a body that nobody reads, and for the end of a closed connection.
    write: without the client taking anything of an answer.
    """

    head: float = 10.0
    body: float = 30.0
    idle: float = 75.0
    drain: float = 3.0
    write: float = 60.0
    connections: int = 1000

    @property
    def interval(self) -> float:
        return min(1.0, *(seconds / 4 for seconds in (self.head, self.body, self.idle, self.drain, self.write)))


class Connections:
    """All connections of the server. It closes those that take too long, and makes room for new ones."""

    def __init__(self, limits: ConnectionLimits, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self.monotonic = monotonic
        self._open: dict[GuardedProtocol, None] = {}
        self._watch: asyncio.TimerHandle | None = None

    @property
    def protocol(self) -> Any:
        """What uvicorn makes for each connection."""
        return partial(GuardedProtocol, guard=self)

    def admit(self, connection: "GuardedProtocol") -> bool:
        """Whether there is a place for a new connection. A waiting one loses its place, strangers and oldest first."""
        if len(self._open) >= self.limits.connections and not self._make_room():
            return False
        self._open[connection] = None
        self._schedule(connection.loop)
        return True

    def remove(self, connection: "GuardedProtocol") -> None:
        self._open.pop(connection, None)

    def check(self) -> None:
        """Closes all connections whose time is over."""
        now = self.monotonic()
        for connection in list(self._open):
            connection.check(now)

    def _make_room(self) -> bool:
        waiting = [connection for connection in self._open if connection.is_waiting]
        if not waiting:
            return False
        oldest = min(waiting, key=lambda it: (it.is_known, it.is_reading_body, it.since))
        self.remove(oldest)
        oldest.abort()
        return True

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._watch is None:
            self._watch = loop.call_later(self.limits.interval, self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        self._watch = None
        self.check()
        if self._open:
            self._schedule(loop)


class GuardedProtocol(HttpToolsProtocol):
    """One connection. uvicorn parses and answers; this class counts, measures and refuses."""

    def __init__(self, *args: Any, guard: Connections, **options: Any) -> None:
        super().__init__(*args, **options)
        self.since = guard.monotonic()
        self.is_reading_body = False
        self._guard = guard
        self._was_known = self._is_refused = False
        self._has_request = self._is_reading_head = False
        self._head_bytes = 0
        self._body_bytes = 0
        self._answered_at = 0.0
        self._stalled_at = self._closing_at = 0.0
        self._stalled_bytes = 0

    @property
    def is_known(self) -> bool:
        """Whether a request of this connection was authenticated."""
        return self._was_known or (self._has_request and bool(self.scope.get("caller")))

    @property
    def is_waiting(self) -> bool:
        """Whether the client is to do something, so that nobody's work is lost with the connection."""
        waits_for_body = self.is_reading_body and not self.flow.read_paused
        return self._is_refused or self._is_reading_head or not self._is_answering or waits_for_body

    @property
    def _is_answering(self) -> bool:
        return self._has_request and not self.cycle.response_complete

    def check(self, now: float) -> None:
        """Closes the connection if its phase has lasted too long."""
        limits = self._guard.limits
        if self.transport.is_closing() or self._is_refused:
            self._closing_at = self._closing_at or now
            if now - self._closing_at >= limits.drain:
                self.abort()
        elif self._stalled_at and now - self._stalled_at >= limits.write:
            self._check_progress(now)
        elif self.flow.read_paused:
            self.since = now  # we make the client wait
        elif self.is_reading_body:
            self._check_body(now)
        elif self._is_reading_head or not self._has_request:
            if now - self.since >= limits.head:
                self._refuse(408, TOO_SLOW)
        elif not self._is_answering and now - self._answered_at >= limits.idle:
            self.transport.close()

    def abort(self) -> None:
        self.transport.abort()

    def _check_body(self, now: float) -> None:
        limits = self._guard.limits
        if self.cycle.response_complete:
            # Whoever was refused may not keep the connection by sending on.
            if now - max(self.since, self._answered_at) >= limits.drain:
                self.transport.close()
        elif now - self.since >= limits.body + self._body_bytes / SLOWEST_BODY:
            self._refuse(408, TOO_SLOW)

    def _check_progress(self, now: float) -> None:
        """A slow client that reads a long answer steadily is served to its end."""
        size = self.transport.get_write_buffer_size()
        if self._stalled_bytes - size < MAX_HEAD_BYTES:
            self.abort()
        self._stalled_at, self._stalled_bytes = now, size

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if not self._guard.admit(self):
            self._write_problem(503, TOO_MANY)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._guard.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        # In slices, because the parser keeps a head until it is whole.
        for start in range(0, len(data), MAX_HEAD_BYTES):
            if self._is_refused or self.transport.is_closing():
                return
            self._parse(data[start : start + MAX_HEAD_BYTES] if len(data) > MAX_HEAD_BYTES else data)

    def _parse(self, data: bytes) -> None:
        was_reading_head = self._is_reading_head
        super().data_received(data)
        if self._is_reading_head:
            self._head_bytes = self._head_bytes + len(data) if was_reading_head else len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(431, TOO_MUCH)
        elif self.is_reading_body and len(self.headers) > MAX_HEADERS:
            self._refuse(431, TOO_MUCH)  # behind the body, as trailers

    def pause_writing(self) -> None:
        self._stalled_at, self._stalled_bytes = self._guard.monotonic(), self.transport.get_write_buffer_size()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stalled_at = 0.0
        super().resume_writing()

    # The parser

    def on_message_begin(self) -> None:
        if self._has_request:  # the first request has the time since the connection
            self.since = self._guard.monotonic()
        self._is_reading_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_reading_head = False
        if self._is_refused:
            return
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > MAX_HEAD_BYTES or len(self.headers) > MAX_HEADERS:
            self._refuse(431, TOO_MUCH)
            return
        self._has_request = self.is_reading_body = True
        self._body_bytes = 0
        self.since = self._guard.monotonic()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if not self._is_refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self.is_reading_body = False
        if not self._is_refused:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        self._answered_at = self._guard.monotonic()
        self._was_known = self.is_known
        super().on_response_complete()

    # Refusals

    def _refuse(self, status: int, detail: str) -> None:
        """Ends the connection with a problem response, unless an answer is under way or nothing was asked."""
        if self._is_refused or self.transport.is_closing():
            return
        self._is_refused = True
        is_silent = not (self._has_request or self._is_reading_head)
        if (self._is_answering and self.cycle.response_started) or (is_silent and status == 408):
            self.transport.close()
            return
        self._write_problem(status, detail)
        if self._is_answering:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        # Closing at once would reset the connection, and with it the answer: what still arrives is dropped for a while.
        self.transport.write_eof()

    def _write_problem(self, status: int, detail: str) -> None:
        problem = {"type": "about:blank", "title": TITLES[status], "status": status, "detail": detail, "request_id": ""}
        body = orjson.dumps(problem)
        head = f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + head.encode() + body)
