import asyncio
from typing import Any

import pytest

from reflexio.server.latency import BOUNDS, ROUTE_CLASSES, Histogram, RequestMeter, route_class


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("POST", "/api/publish_interaction", "publish"),
        ("POST", "/api/search_profiles", "search"),
        ("POST", "/api/context", "search"),
        ("POST", "/api/get_profiles", "read"),
        ("GET", "/api/whoami", "read"),
        ("DELETE", "/api/delete_profile", "write"),
        ("POST", "/stall_state/notified", "write"),
        ("GET", "/api/operations/7/events", "waiting"),
        ("GET", "/api/learning_status", "waiting"),
        ("POST", "/mcp", "mcp"),
        ("POST", "/v1/chat/completions", "pass_through"),
        ("GET", "/health/ready", "health"),
        ("GET", "/metrics", "health"),
        ("GET", "/", "page"),
        ("GET", "/users/ann", "page"),
    ],
)
def test_a_path_belongs_to_one_of_few_classes(method: str, path: str, expected: str) -> None:
    assert route_class(method, path) == expected
    assert expected in ROUTE_CLASSES


def test_buckets_hold_what_took_at_most_so_long() -> None:
    histogram = Histogram()
    for seconds in (0.001, 0.002, 99.0):
        histogram.add(seconds)
    assert list(histogram.cumulative())[:2] == [("0.001", 1), ("0.0025", 2)]
    assert list(histogram.cumulative())[-2:] == [(str(BOUNDS[-1]), 2), ("+Inf", 3)]
    assert histogram.seconds == pytest.approx(99.003)


async def test_requests_are_counted_by_their_status_and_also_when_nobody_answers_them() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/api/context":
            raise asyncio.CancelledError
        assert meter.in_progress == 1
        await send({"type": "http.response.start", "status": 404, "headers": []})

    async def send(message: Any) -> None:
        pass

    async def receive() -> Any:
        return {}

    meter = RequestMeter(app)
    await meter({"type": "http", "method": "GET", "path": "/api/nothing"}, receive, send)
    with pytest.raises(asyncio.CancelledError):
        await meter({"type": "http", "method": "POST", "path": "/api/context"}, receive, send)
    assert meter.answers == {("read", "4xx"): 1, ("search", "none"): 1}
    assert meter.in_progress == 0
