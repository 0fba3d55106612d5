"""How long requests take, counted in front of everything else. Classes of routes stand for paths: paths name users."""

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from starlette.types import ASGIApp, Message, Receive, Scope, Send

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Seconds: upper bounds of the buckets."""
PUBLISH, SEARCH, READ, WRITE = "publish", "search", "read", "write"
WAITING, MCP, PASS_THROUGH, HEALTH, PAGE = "waiting", "mcp", "pass_through", "health", "page"
ROUTE_CLASSES = (PUBLISH, SEARCH, READ, WRITE, WAITING, MCP, PASS_THROUGH, HEALTH, PAGE)
HEALTH_PATHS = ("/health", "/metrics", "/meta/version")


def route_class(method: str, path: str) -> str:
    """One of a few classes, whatever the path: `waiting` are calls that stay open until learning has an answer."""
    if path.startswith(("/api/", "/stall_state")):
        return _api_class(method, path)
    if path.startswith(HEALTH_PATHS):
        return HEALTH
    if path == "/mcp":
        return MCP
    return PASS_THROUGH if path.startswith("/v1/") else PAGE


def _api_class(method: str, path: str) -> str:
    name = path.removeprefix("/api/")
    if name == "publish_interaction":
        return PUBLISH
    if name.startswith("search") or name == "context":
        return SEARCH
    if name in ("learning_status", "get_operation_status") or name.startswith("operations/"):
        return WAITING
    return READ if method in ("GET", "HEAD") or name.startswith("get_") else WRITE


class Histogram:
    """Durations of one class of routes."""

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        self.buckets[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds

    def cumulative(self) -> Iterator[tuple[str, int]]:
        """How many took at most so long, up to all of them."""
        total = 0
        for bound, number in zip([*map(str, BOUNDS), "+Inf"], self.buckets, strict=True):
            total += number
            yield bound, total


class RequestMeter:
    """An ASGI application in front of another. Durations end with the last byte; `in_progress` are under way."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.durations = {name: Histogram() for name in ROUTE_CLASSES}
        self.answers: Counter[tuple[str, str]] = Counter()
        self.in_progress = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = "none"

        async def send_noted(message: Message) -> None:
            nonlocal answer
            if message["type"] == "http.response.start":
                answer = f"{message['status'] // 100}xx"
            await send(message)

        name, started = route_class(scope["method"], scope["path"]), time.perf_counter()
        self.in_progress += 1
        try:
            await self._app(scope, receive, send_noted)
        finally:
            self.in_progress -= 1
            self.durations[name].add(time.perf_counter() - started)
            self.answers[name, answer] += 1
