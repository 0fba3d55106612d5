"""The assistant behind a webhook: what is sent, which answers are accepted, and which addresses are forbidden."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Event
from typing import Any

import pytest

from reflexio.errors import AssistantFailed
from reflexio.models.optimisation import ChatMessage, Guidance
from reflexio.providers.assistants import (
    MAX_REPLY_BYTES,
    RetryPolicy,
    WebhookAssistant,
    host_addresses,
    is_forbidden,
    payload,
)
from tests.webhook import Raw, Respond, Webhook, webhook

CONVERSATION = [ChatMessage("system", "Be kind."), ChatMessage("user", "Where is my parcel? 😀 ü")]
GUIDANCE = Guidance(12, "Ask the neighbours.", "A parcel is missing")


@asynccontextmanager
async def calling(respond: Respond, **more: Any) -> AsyncIterator[tuple[WebhookAssistant, Webhook]]:
    with webhook(respond) as hook:
        assistant = WebhookAssistant(hook.url, **more)
        yield assistant, hook
        await assistant.aclose()


def policy(pauses: list[float], retries: int = 3, seconds: float = 5.0) -> RetryPolicy:
    async def sleep(pause: float) -> None:
        pauses.append(pause)

    return RetryPolicy(seconds, retries, 0.5, sleep)


async def test_payload_and_reply_are_exactly_those_of_the_contract() -> None:
    async with calling(lambda sent: {"content": "With number 12.", "tokens": 3}) as (assistant, hook):
        assert await assistant.answer(CONVERSATION, GUIDANCE) == "With number 12."
    (sent,) = hook.requests
    assert sent == {
        "messages": [{"role": message.role, "content": message.content} for message in CONVERSATION],
        "playbooks": [{"id": 12, "content": "Ask the neighbours.", "trigger": "A parcel is missing"}],
    }
    assert hook.headers[0]["content-type"] == "application/json"
    assert "authorization" not in hook.headers[0]


async def test_the_authorization_header_is_sent_unchanged() -> None:
    async with calling(lambda sent: {"content": ""}, auth_header="Token  abc==") as (assistant, hook):
        assert await assistant.answer(CONVERSATION, GUIDANCE) == ""
    assert hook.headers[0]["authorization"] == "Token  abc=="


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_transient_failures_are_retried_after_growing_pauses(status: int) -> None:
    pauses: list[float] = []
    left = [Raw(status)] * 2

    def respond(_: dict[str, Any]) -> dict[str, Any] | Raw:
        return left.pop() if left else {"content": "back"}

    async with calling(respond, retry=policy(pauses)) as (assistant, hook):
        assert await assistant.answer(CONVERSATION, GUIDANCE) == "back"
    assert (pauses, len(hook.requests)) == ([0.5, 1.0], 3)


async def test_after_the_last_retry_the_answer_fails() -> None:
    pauses: list[float] = []
    async with calling(lambda _: Raw(502), retry=policy(pauses)) as (assistant, hook):
        with pytest.raises(AssistantFailed, match="HTTP 502"):
            await assistant.answer(CONVERSATION, GUIDANCE)
    assert (pauses, len(hook.requests)) == ([0.5, 1.0, 2.0], 4)


PERMANENT: dict[str, tuple[Raw, str]] = {
    "not found": (Raw(404), "HTTP 404"),
    "redirect": (Raw(307, headers={"Location": "http://127.0.0.1:9/"}), "redirects"),
    "no JSON": (Raw(body=b"hello"), "did not answer with JSON"),
    "nothing": (Raw(), "nothing came back"),
    "a list": (Raw(body=b'["content"]'), 'no text under "content"'),
    "a number": (Raw(body=b'{"content": 1}'), 'no text under "content"'),
    "null": (Raw(body=b'{"content": null}'), 'no text under "content"'),
    "too long": (Raw(body=b'{"content": "' + b"x" * MAX_REPLY_BYTES + b'"}'), "longer than"),
    "too deep": (Raw(body=b"[" * 200_000), "did not answer with JSON"),
    "not UTF-8": (Raw(body=b'{"content": "\xff"}'), "did not answer with JSON"),
}


@pytest.mark.parametrize("kind", PERMANENT)
async def test_permanent_failures_are_not_retried(kind: str) -> None:
    answer, reason = PERMANENT[kind]
    async with calling(lambda _: answer, retry=policy([])) as (assistant, hook):
        with pytest.raises(AssistantFailed, match=reason):
            await assistant.answer(CONVERSATION, GUIDANCE)
    assert len(hook.requests) == 1


async def test_a_slow_webhook_fails_after_the_timeout() -> None:
    released = Event()

    def slow(_: dict[str, Any]) -> Raw:
        released.wait(30)
        return Raw(500)

    async with calling(slow, retry=policy([], retries=0, seconds=0.05)) as (assistant, _):
        with pytest.raises(AssistantFailed, match=r"within 0\.05 s"):
            await assistant.answer(CONVERSATION, GUIDANCE)
        released.set()


async def test_a_webhook_that_nobody_serves_fails() -> None:
    with webhook() as hook:
        url = hook.url
    assistant = WebhookAssistant(url, retry=policy([]))
    with pytest.raises(AssistantFailed, match="cannot be reached"):
        await assistant.answer(CONVERSATION, GUIDANCE)
    await assistant.aclose()


async def test_nul_and_lone_surrogates_are_replaced() -> None:
    async with calling(lambda _: Raw(body=rb'{"content": "a\u0000b\ud800c"}')) as (assistant, _):
        assert await assistant.answer(CONVERSATION, GUIDANCE) == "a\ufffdb?c"


@pytest.mark.parametrize(
    ("number", "refused"),
    [
        ("169.254.169.254", True),
        ("169.254.1.1", True),
        ("fe80::1", True),
        ("fe80::1%eth0", True),
        ("::ffff:169.254.169.254", True),
        ("64:ff9b::a9fe:a9fe", True),
        ("2002:a9fe:a9fe::1", True),
        ("fd00:ec2::254", True),
        ("100.100.100.200", True),
        ("224.0.0.1", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("::1", False),
        ("93.184.216.34", False),
    ],
)
def test_metadata_and_link_local_addresses_are_forbidden(number: str, refused: bool) -> None:
    assert is_forbidden(number) is refused


@pytest.mark.parametrize("host", ["metadata.google.internal", "METADATA.google.internal.", "2852039166", "0xA9FEA9FE"])
async def test_other_spellings_of_the_metadata_service_are_refused_at_once(host: str) -> None:
    pauses: list[float] = []
    assistant = WebhookAssistant(f"http://{host}/latest", retry=policy(pauses))
    with pytest.raises(AssistantFailed, match="never called"):
        await assistant.answer(CONVERSATION, GUIDANCE)
    assert pauses == []
    await assistant.aclose()


async def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that points here while it is checked cannot point elsewhere a moment later: it is looked up once."""
    lookups: list[str] = []

    async def here(host: str, port: int) -> list[str]:
        lookups.append(host)
        return ["127.0.0.1"]

    monkeypatch.setattr("reflexio.providers.assistants.host_addresses", here)
    with webhook(lambda sent: {"content": "here"}) as hook:
        port = hook.url.split(":")[2].split("/")[0]
        assistant = WebhookAssistant(f"http://assistant.example:{port}/rollout")
        assert await assistant.answer(CONVERSATION, GUIDANCE) == "here"
        await assistant.aclose()
    assert lookups == ["assistant.example"]
    assert hook.headers[0]["host"] == f"assistant.example:{port}"


async def test_a_name_with_one_forbidden_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    async def several(*_: Any, **__: Any) -> list[Any]:
        return [(0, 0, 0, "", ("93.184.216.34", 80)), (0, 0, 0, "", ("169.254.169.254", 80))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", several)
    with pytest.raises(AssistantFailed, match="never called"):
        await host_addresses("rebinding.example", 80)


def test_the_payload_is_ascii() -> None:

    assert payload(CONVERSATION, GUIDANCE).isascii()
    assert json.loads(payload(CONVERSATION, GUIDANCE))["messages"][0] == {"role": "system", "content": "Be kind."}
