"""Following an operation survives what happens to connections."""

from collections.abc import Iterator
from contextlib import aclosing

import httpx
import pytest

from reflexio.client.aio import AsyncReflexioClient
from reflexio.client.sync import ReflexioClient
from reflexio.errors import NotFound, ServerUnreachable
from reflexio.models.operation import OperationStatusInfo
from reflexio.server.problems import problem


def event(status: str, processed: int = 0) -> bytes:
    news = OperationStatusInfo.model_validate(
        {"service_name": "rerun", "status": status, "started_at": 1, "processed_users": processed}
    )
    return f"event: progress\ndata: {news.model_dump_json()}\n\n".encode()


class Breaking(httpx.SyncByteStream):
    """A stream that ends as connections do."""

    def __init__(self, *parts: bytes | Exception) -> None:
        self._parts = parts

    def __iter__(self) -> Iterator[bytes]:
        for part in self._parts:
            if isinstance(part, Exception):
                raise part
            yield part


def follow(
    *connections: httpx.SyncByteStream | httpx.Response | Exception, retries: int = 2
) -> Iterator[tuple[str, int]]:
    waiting = list(connections)

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.raw_path == b"/api/operations/a%2Fb/events"
        one = waiting.pop(0)
        if isinstance(one, Exception):
            raise one
        return one if isinstance(one, httpx.Response) else httpx.Response(200, stream=one)

    with ReflexioClient(url_endpoint="http://server", transport=httpx.MockTransport(answer), retries=retries) as client:
        client._sleep = lambda _: None
        for news in client.follow_operation("a/b"):
            yield news.status.value, news.processed_users
    assert not waiting


def test_comments_are_passed_over_and_the_end_is_the_last() -> None:
    stream = Breaking(event("in_progress"), b": still at it\n\n", event("completed", 1), event("failed"))
    assert list(follow(stream)) == [("in_progress", 0), ("completed", 1)]


@pytest.mark.parametrize("end", [[httpx.ReadError("reset")], [httpx.ReadTimeout("silence")], []], ids=str)
def test_a_connection_that_ends_early_is_made_again_and_nothing_is_told_twice(end: list[Exception]) -> None:
    first = Breaking(event("in_progress", 1), *end)
    second = Breaking(event("in_progress", 1), event("cancelled", 2))
    assert list(follow(first, second)) == [("in_progress", 1), ("cancelled", 2)]


def test_a_server_that_is_gone_is_told_after_some_tries() -> None:
    followed = follow(Breaking(event("in_progress")), *[httpx.ConnectError("refused")] * 2, retries=2)
    assert next(followed) == ("in_progress", 0)
    with pytest.raises(ServerUnreachable, match="refused"):
        next(followed)


def test_an_unknown_operation_is_not_asked_for_again() -> None:
    missing = problem(404, "There is no operation 'a/b'.")
    answer = httpx.Response(404, content=bytes(missing.body), headers=dict(missing.headers))
    with pytest.raises(NotFound, match="no operation"):
        list(follow(answer))


async def test_the_asynchronous_client_follows_and_may_leave_early() -> None:
    closed = []

    class Stream(httpx.AsyncByteStream):
        async def __aiter__(self):  # type: ignore[no-untyped-def]
            yield event("in_progress")
            yield event("in_progress", 1)
            yield event("completed", 2)

        async def aclose(self) -> None:
            closed.append(True)

    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=Stream()))
    async with AsyncReflexioClient(url_endpoint="http://server", transport=transport) as client:
        assert [news.processed_users async for news in client.follow_operation("a")] == [0, 1, 2]
        async with aclosing(client.follow_operation("a")) as followed:  # type: ignore[type-var]
            async for _ in followed:
                break
    assert closed == [True, True]
