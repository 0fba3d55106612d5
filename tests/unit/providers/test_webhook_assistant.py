"""The assistant behind a webhook: what is sent, which answers are accepted, and which addresses are forbidden."""

import asyncio
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
    payload,
)
from reflexio.providers.outgoing import OutgoingAddresses
from tests.webhook import Raw, Respond, Webhook, webhook

CONVERSATION = [ChatMessage("system", "Be kind."), ChatMessage("user", "Where is my parcel? 😀 ü")]
GUIDANCE = Guidance(12, "Ask the neighbours.", "A parcel is missing")


@asynccontextmanager
async def calling(respond: Respond, **more: Any) -> AsyncIterator[tuple[WebhookAssistant, Webhook]]:
    with webhook(respond) as hook:
        assistant = WebhookAssistant(hook.url, addresses=OutgoingAddresses(), **more)
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
    assistant = WebhookAssistant(url, addresses=OutgoingAddresses(), retry=policy([]))
    with pytest.raises(AssistantFailed, match="cannot be reached"):
        await assistant.answer(CONVERSATION, GUIDANCE)
    await assistant.aclose()


async def test_nul_and_lone_surrogates_are_replaced() -> None:
    async with calling(lambda _: Raw(body=rb'{"content": "a\u0000b\ud800c"}')) as (assistant, _):
        assert await assistant.answer(CONVERSATION, GUIDANCE) == "a\ufffdb?c"


@pytest.mark.parametrize("host", ["metadata.google.internal", "METADATA.google.internal.", "2852039166", "0xA9FEA9FE"])
async def test_other_spellings_of_the_metadata_service_are_refused_at_once(host: str) -> None:
    pauses: list[float] = []
    assistant = WebhookAssistant(f"http://{host}/latest", addresses=OutgoingAddresses(), retry=policy(pauses))
    with pytest.raises(AssistantFailed, match="never called"):
        await assistant.answer(CONVERSATION, GUIDANCE)
    assert pauses == []
    await assistant.aclose()


async def test_a_private_webhook_is_called_only_where_that_is_allowed() -> None:
    async def no() -> bool:
        return False

    with webhook(lambda sent: {"content": "here"}) as hook:
        assistant = WebhookAssistant(hook.url, addresses=OutgoingAddresses(no), retry=policy([]))
        with pytest.raises(AssistantFailed, match="REFLEXIO_PRIVATE_ADDRESSES"):
            await assistant.answer(CONVERSATION, GUIDANCE)
        await assistant.aclose()
    assert hook.requests == []


@pytest.mark.parametrize("body", [b"SECRET of an internal server", b'{"other": "SECRET"}', b'["SECRET"]'])
async def test_nothing_that_the_webhook_answered_is_in_the_reason(body: bytes) -> None:
    for status in (200, 401, 500):
        async with calling(lambda _, status=status: Raw(status, body), retry=policy([])) as (assistant, _):  # type: ignore[misc]
            with pytest.raises(AssistantFailed) as raised:
                await assistant.answer(CONVERSATION, GUIDANCE)
        assert "SECRET" not in str(raised.value)


async def test_an_internal_server_without_http_leaves_no_words_in_the_reason() -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 SECRET.internal ESMTP\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assistant = WebhookAssistant(f"http://127.0.0.1:{port}", addresses=OutgoingAddresses(), retry=policy([]))
        with pytest.raises(AssistantFailed, match="failed") as raised:
            await assistant.answer(CONVERSATION, GUIDANCE)
        await assistant.aclose()
    assert "SECRET" not in str(raised.value)


def test_the_payload_is_ascii() -> None:

    assert payload(CONVERSATION, GUIDANCE).isascii()
    assert json.loads(payload(CONVERSATION, GUIDANCE))["messages"][0] == {"role": "system", "content": "Be kind."}
