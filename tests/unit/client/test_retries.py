"""What is tried again, what is not, and what an agent sees when memory is away."""

import json
import logging
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import httpx
import pytest

from reflexio import AsyncReflexioClient, errors
from reflexio.client import responses
from reflexio.client.responses import HttpReply
from reflexio.client.sync import ReflexioClient
from tests.builders import turns

Answer = httpx.Response | Exception


class Script(httpx.MockTransport):
    """Answers in the given order, and remembers what it was asked and how long the client waited."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.asked: list[httpx.Request] = []
        self.waited: list[float] = []
        super().__init__(self._next)

    def _next(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def client(script: Script, **more: Any) -> ReflexioClient:
    made = ReflexioClient("key", "http://reflexio.test", transport=script, **more)
    made._sleep = lambda seconds: script.waited.append(float(seconds))
    return made


def ok(**values: Any) -> httpx.Response:
    return httpx.Response(200, json={"success": True, "org_id": "acme", **values})


def failed(status: int, **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"detail": "no"}, headers=headers)


def publish(made: ReflexioClient) -> Any:
    return made.publish_interaction("ann", turns())


def delete(made: ReflexioClient) -> Any:
    return made.delete_session("s", wait_for_response=True)


LOST = [httpx.ReadError("lost"), httpx.ReadTimeout("slow"), httpx.RemoteProtocolError("cut"), httpx.WriteError("cut")]
NEVER_SENT = [httpx.ConnectError("refused"), httpx.ConnectTimeout("slow"), httpx.PoolTimeout("busy")]


@pytest.mark.parametrize("fault", [*NEVER_SENT, *LOST, failed(502), failed(503), failed(504)], ids=repr)
@pytest.mark.parametrize("call", [publish, ReflexioClient.whoami, lambda made: made.clear_user_data("ann")])
def test_what_may_be_repeated_is(fault: Answer, call: Callable[[ReflexioClient], Any]) -> None:
    script = Script(fault, ok())
    assert call(client(script)).success
    assert len(script.asked) == 2
    assert 0.05 <= script.waited[0] <= 0.15


@pytest.mark.parametrize("fault", NEVER_SENT, ids=repr)
def test_a_deletion_that_was_never_sent_is_repeated(fault: Answer) -> None:
    script = Script(fault, ok())
    assert delete(client(script)).success


@pytest.mark.parametrize("fault", [*LOST, failed(502), failed(503)], ids=repr)
def test_a_deletion_that_may_have_happened_is_not(fault: Answer) -> None:
    script = Script(fault, ok())
    with pytest.raises(errors.ReflexioError):
        delete(client(script))
    assert len(script.asked) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 500])
def test_what_would_fail_again_is_not_repeated(status: int) -> None:
    script = Script(failed(status), ok())
    with pytest.raises(errors.ReflexioError):
        publish(client(script))
    assert len(script.asked) == 1


def test_repetitions_carry_the_same_key_and_body() -> None:
    script = Script(httpx.ReadError("lost"), failed(503), ok())
    publish(client(script))
    publish_again = Script(ok())
    publish(client(publish_again))
    keys = {each.headers["idempotency-key"] for each in script.asked}
    assert len(keys) == 1
    assert len({each.content for each in script.asked}) == 1
    assert publish_again.asked[0].headers["idempotency-key"] not in keys


def test_it_gives_up_after_the_given_number() -> None:
    script = Script(*[httpx.ConnectError("refused")] * 3)
    with pytest.raises(errors.ServerUnreachable, match=r"'http://reflexio.test'; start one with `reflexio serve`"):
        publish(client(script, retries=2))
    assert script.waited[1] > script.waited[0] / 3
    none = Script(httpx.ConnectError("refused"))
    with pytest.raises(errors.ServerUnreachable):
        publish(client(none, retries=0))
    assert none.waited == []


def test_a_timeout_is_for_the_call_and_its_repetitions_together() -> None:
    script = Script(httpx.ReadTimeout("slow"), ok())
    with pytest.raises(errors.ServerUnreachable):
        client(script, timeout=0).whoami()
    assert len(script.asked) == 1


def test_a_limited_caller_waits_as_long_as_it_was_told() -> None:
    script = Script(failed(429, **{"Retry-After": "7"}), failed(429, **{"Retry-After": "9999"}), ok())
    assert delete(client(script)).success
    assert script.waited == [7.0, responses.LONGEST_WAIT]


def limited(retry_after: str) -> HttpReply:
    return HttpReply(429, {"retry-after": retry_after}, b"")


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("3", 3.0), ("2.5", 2.5), ("", None), ("soon", None), ("-1", None), ("Not a date GMT", None)],
)
def test_retry_after_is_read(header: str, seconds: float | None) -> None:
    assert responses.retry_after(limited(header)) == seconds


def test_retry_after_may_be_a_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reflexio.client.responses.time.time", lambda: 1_000_000.0)
    in_a_minute = formatdate(1_000_060, usegmt=True)
    assert responses.retry_after(limited(in_a_minute)) == 60.0
    assert responses.retry_after(limited(formatdate(0, usegmt=True))) == 0.0


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.InvalidRequest),
        (401, errors.NotAuthorised),
        (403, errors.NotAuthorised),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (413, errors.TooLarge),
        (415, errors.InvalidRequest),
        (422, errors.InvalidRequest),
        (429, errors.RateLimited),
        (500, errors.ServerFailed),
        (507, errors.ServerFailed),
    ],
)
def test_each_status_is_an_error_of_ours_with_the_servers_words(status: int, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="no"):
        client(Script(failed(status)), retries=0).whoami()


@pytest.mark.parametrize("body", [b"<html>a proxy</html>", b"[]", b'{"detail": ["a list"]}', b""])
def test_errors_of_something_else_are_errors_of_ours_too(body: bytes) -> None:
    with pytest.raises(errors.ServerFailed):
        client(Script(httpx.Response(500, content=body))).whoami()


def test_an_answer_that_is_not_ours_says_so() -> None:
    with pytest.raises(errors.ServerFailed, match="did not answer as a Reflexio server does"):
        client(Script(httpx.Response(200, text="<html>hello</html>"))).whoami()


def test_a_redirect_is_not_taken_for_an_answer() -> None:
    with pytest.raises(errors.ServerFailed):
        client(Script(httpx.Response(302, headers={"Location": "https://elsewhere.test"}))).whoami()


CALLS: list[Callable[[ReflexioClient], object]] = [
    publish,
    delete,
    ReflexioClient.get_config,
    ReflexioClient.delete_all_interactions,
    ReflexioClient.get_usage,
    lambda made: made.clear_user_data("ann"),
    lambda made: made.set_config({"window_size": 3}),
    lambda made: made.get_interactions("ann"),
    lambda made: made.get_learning_status("r"),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("status", [301, 302, 304, 307, 308])
def test_nothing_is_done_by_a_redirect(call: Callable[[ReflexioClient], object], status: int) -> None:
    there = httpx.Response(status, headers={"Location": "https://elsewhere.test/x"})
    with pytest.raises(errors.ServerFailed, match=r"points elsewhere, to 'https://elsewhere.test/x'"):
        call(client(Script(there)))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("body", [b"", b"{}", b'{"status": "ok"}', b'{"message": "welcome"}'])
def test_only_a_reflexio_server_says_that_something_was_done(
    call: Callable[[ReflexioClient], object], body: bytes
) -> None:
    with pytest.raises(errors.ServerFailed, match="did not answer as a Reflexio server does"):
        call(client(Script(httpx.Response(200, content=body))))


# --- memory never breaks an agent


@pytest.mark.parametrize("fault", [httpx.ConnectError("refused"), failed(500), failed(401), failed(422)], ids=repr)
def test_failing_open_answers_with_nothing_and_why(fault: Answer, caplog: pytest.LogCaptureFixture) -> None:
    def made() -> ReflexioClient:
        return client(Script(fault), fail_open=True, retries=0)

    with caplog.at_level(logging.WARNING, "reflexio.client"):
        stored = publish(made())
    assert not stored.success
    assert stored.message
    assert "going on without memory" in caplog.text
    assert made().get_interactions("ann").interactions == []
    assert made().get_all_interactions().interactions == []
    assert made().get_requests().sessions == []
    assert not made().finalize_session("ann", "s").accepted


def test_failing_open_covers_bad_input_too() -> None:
    assert not client(Script(), fail_open=True).publish_interaction("", []).success


@pytest.mark.parametrize("value", [object(), b"\xff", "\ud800"], ids=["object", "bytes", "surrogate"])
def test_what_is_no_json_is_a_bad_request_and_breaks_no_agent(value: object) -> None:
    said = [{"content": "x", "tools_used": [{"tool_name": "t", "tool_data": {"x": value}}]}]
    with pytest.raises(errors.InvalidRequest, match="cannot be sent"):
        client(Script()).publish_interaction("ann", said)
    (warning,) = client(Script(ok()), fail_open=True).publish_interaction("ann", said).warnings
    assert "tool_data was left out" in warning
    assert not client(Script(), fail_open=True).publish_interaction("\ud800", said).success


def test_what_fits_into_no_address_is_a_bad_request() -> None:
    with pytest.raises(errors.InvalidRequest, match="cannot be sent"):
        client(Script()).get_learning_status("\ud800")


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://exa mple", "localhost:8081", "ftp://x", "http://", "http://127.0.0.1:99999"]
)
async def test_an_address_that_is_none_breaks_no_agent(url: str) -> None:
    with ReflexioClient(url_endpoint=url, fail_open=True, retries=0) as made:
        assert not publish(made).success
        with pytest.raises(errors.ReflexioError):
            made.whoami()
    async with AsyncReflexioClient(url_endpoint=url, fail_open=True, retries=0) as awaited:
        assert not (await awaited.publish_interaction("ann", turns())).success


def test_a_moment_that_is_none_breaks_no_agent() -> None:
    made = client(Script(), fail_open=True)
    assert not made.get_interactions("ann", start_time="yesterday").success  # type: ignore[arg-type]


def test_deleting_and_configuring_never_fail_open() -> None:
    for call in (delete, ReflexioClient.get_config, lambda made: made.clear_user_data("ann")):
        with pytest.raises(errors.ServerUnreachable):
            call(client(Script(httpx.ConnectError("x")), fail_open=True, retries=0))


async def test_the_asynchronous_client_repeats_and_fails_open() -> None:
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    script = Script(httpx.ReadError("lost"), ok(), *[httpx.ConnectError("x")] * 3)
    async with AsyncReflexioClient(url_endpoint="http://reflexio.test", transport=script, fail_open=True) as made:
        made._sleep = wait  # type: ignore[assignment]
        assert (await made.publish_interaction("ann", turns())).success
        assert not (await made.publish_interaction("ann", turns())).success
    assert len(waited) == 3


# --- what is sent


def test_the_key_goes_along_and_only_what_was_said_is_sent() -> None:
    script = Script(ok())
    client(script).publish_interaction("ann", [{"content": "x"}], source="chat")
    (asked,) = script.asked
    assert asked.headers["authorization"] == "Bearer key"
    assert asked.headers["content-type"] == "application/json"
    sent = json.loads(asked.content)
    assert (sent["user_id"], sent["source"]) == ("ann", "chat")
    assert sent["interaction_data_list"] == [{"content": "x"}]
    assert "session_id" not in sent


def test_waiting_for_learning_takes_longer_than_other_calls() -> None:
    script = Script(ok(), ok())
    made = client(script, timeout=3)
    made.publish_interaction("ann", turns(), wait_for_response=True)
    publish(made)
    waited, plain = (each.extensions["timeout"]["read"] for each in script.asked)
    assert (waited, plain) == (600, 3)
    assert script.asked[0].url.params["wait_for_response"] == "true"


def test_the_endpoint_is_what_the_caller_says_then_the_environment_then_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert ReflexioClient().endpoint.url == "http://127.0.0.1:8081"
    assert ReflexioClient().endpoint.headers == {}
    monkeypatch.setenv("REFLEXIO_URL", "http://a.test/")
    monkeypatch.setenv("REFLEXIO_API_KEY", "from the environment")
    assert ReflexioClient().endpoint.url == "http://a.test"
    assert ReflexioClient().endpoint.api_key == "from the environment"
    assert ReflexioClient("own", "http://b.test").endpoint.url == "http://b.test"
    assert ReflexioClient("own").endpoint.api_key == "own"
