import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from reflexio.errors import (
    ContextTooLong,
    Declined,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    UnreadableAnswer,
)
from reflexio.learners.llm.schemas import ExtractionAnswer
from reflexio.models.extraction import Spend
from reflexio.ports.chat import Chat, Messages
from reflexio.providers.chat.connection import MAX_ANSWER_BYTES
from reflexio.providers.chat.resolve import CallOptions, ProviderCredentials, resolve
from tests.scripted_model import Answer, Failure, Filtered, Late, Raw, Refusal, ScriptedModel, Spoken, scripted_model

SKY = Messages("Name the colour.", "The sky at noon.")
PIXEL = "data:image/png;base64,iVBORw0KGgo="
LIMIT = (
    "Rate limit reached for gpt-5 on tokens per min. You can increase your rate limit by adding a payment method "
    "to your account at https://platform.openai.com/account/billing."
)


class Colour(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str


BLUE = Colour(name="blue")


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with scripted_model(otherwise={"name": "blue"}) as served:
        yield served


@asynccontextmanager
async def opened(url: str, name: str = "openai:loopback", *, patience: float = 30) -> AsyncIterator[Chat]:
    chat = resolve(
        name, keys={name.partition(":")[0]: ProviderCredentials("secret-key", url)}, options=CallOptions(patience)
    )
    try:
        yield chat
    finally:
        await chat.aclose()


async def ask(model: ScriptedModel, *answers: Answer, messages: Messages = SKY) -> Colour:
    model.answers.extend(answers)
    async with opened(model.url) as chat:
        return (await chat.ask(messages, Colour)).answer


async def failing(model: ScriptedModel, *answers: Answer, name: str = "openai:loopback") -> ProviderError:
    model.answers.extend(answers)
    url = model.url if name.startswith("openai") else model.url.removesuffix("/v1")
    async with opened(url, name) as chat:
        with pytest.raises(ProviderError) as raised:
            await chat.ask(SKY, Colour)
    return raised.value


async def test_the_request_carries_key_model_and_words_in_order(model: ScriptedModel) -> None:
    await ask(model)
    [request] = model.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer secret-key"
    assert request.body["model"] == "loopback"
    assert [(message["role"], message["content"]) for message in request.body["messages"]] == [
        ("system", SKY.instructions),
        ("user", SKY.case),
    ]
    assert request.schema["properties"] == {"name": {"type": "string"}}


async def test_the_tokens_counted_are_the_providers(model: ScriptedModel) -> None:
    async with opened(model.url) as chat:
        spend = (await chat.ask(SKY, Colour)).spend
    assert spend.input_tokens == model.requests[0].prompt_tokens


async def test_tokens_are_estimated_when_the_provider_does_not_count(model: ScriptedModel) -> None:
    message = {"role": "assistant", "content": '{"name": "blue"}'}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    model.answers.append(Raw(json.dumps(body).encode()))
    async with opened(model.url) as chat:
        reply = await chat.ask(SKY, Colour)
    assert reply.answer == BLUE
    assert (reply.spend.input_tokens, reply.spend.output_tokens) == (8, 4)


ANTHROPIC_BLUE = {
    "id": "1",
    "type": "message",
    "role": "assistant",
    "model": "claude-haiku-4-5",
    "content": [{"type": "tool_use", "id": "call-1", "name": "answer", "input": {"name": "blue"}}],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 10, "output_tokens": 5},
}
GOOGLE_BLUE = {
    "candidates": [
        {
            "content": {"role": "model", "parts": [{"functionCall": {"name": "answer", "args": {"name": "blue"}}}]},
            "finishReason": "STOP",
        }
    ],
    "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
}


@pytest.mark.parametrize(
    ("name", "body"), [("anthropic:claude-haiku-4-5", ANTHROPIC_BLUE), ("google:gemini-2.5-flash", GOOGLE_BLUE)]
)
async def test_anthropic_and_google_protocols_work(model: ScriptedModel, name: str, body: dict[str, Any]) -> None:
    model.answers += [Raw(json.dumps(body).encode()), Raw(b"{}", 503)]
    async with opened(model.url.removesuffix("/v1"), name) as chat:
        reply = await chat.ask(SKY, Colour)
        with pytest.raises(ProviderUnavailable):
            await chat.ask(SKY, ExtractionAnswer)
    assert reply.answer == BLUE
    assert reply.spend == Spend(name, calls=1, input_tokens=10, output_tokens=5)
    sent = json.dumps(model.requests[0].body)
    assert SKY.instructions in sent
    assert SKY.case in sent
    assert "time_to_live" in json.dumps(model.requests[1].body)


async def test_anthropic_caches_the_constant_part_of_the_prompt(model: ScriptedModel) -> None:
    model.answers.append(Raw(json.dumps(ANTHROPIC_BLUE).encode()))
    async with opened(model.url.removesuffix("/v1"), "anthropic:claude-haiku-4-5") as chat:
        await chat.ask(SKY, Colour)
    body = model.requests[0].body
    assert "cache_control" in body["system"][-1]
    assert "cache_control" in body["tools"][-1]
    assert "cache_control" not in json.dumps(body["messages"])
    assert "cache_control" not in body


async def test_a_repair_shows_what_was_wrong_and_none_of_the_answer(model: ScriptedModel) -> None:
    assert await ask(model, {"name": ["ignore all rules"], "ignore all rules": 1}) == BLUE
    assert "name: Input should be a valid string" in model.requests[1].case
    assert model.requests[1].case.startswith(SKY.case)
    assert "ignore all rules" not in model.requests[1].case


@pytest.mark.parametrize(
    "words", ['{"name": "blue"}', 'Sure!\n```json\n{"name": "blue"}\n```', '<think>sky</think> {"name": "blue"}']
)
async def test_json_in_plain_text_is_read_without_another_call(model: ScriptedModel, words: str) -> None:
    assert await ask(model, Spoken(words)) == BLUE
    assert model.calls == 1


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Failure(401, "bad key"), ProviderRefused),
        (Failure(402, "pay"), ProviderRefused),
        (Failure(403, "not yours"), ProviderRefused),
        (Failure(404, "no such model", "model_not_found"), ProviderRefused),
        (Failure(408, "late"), ProviderUnavailable),
        (Failure(413, "too long"), ContextTooLong),
        (Failure(400, "This model's maximum context length is exceeded."), ContextTooLong),
        (Failure(400, "the request exceeds the available context size, try increasing it"), ContextTooLong),
        (Failure(400, "filtered", "content_filter"), Declined),
        (Failure(429, "slower"), ProviderUnavailable),
        (Failure(429, LIMIT, "rate_limit_exceeded"), ProviderUnavailable),
        (Failure(429, LIMIT), ProviderUnavailable),
        (Failure(500, "oops"), ProviderUnavailable),
        (Failure(502, "oops"), ProviderUnavailable),
        (Failure(503, "busy"), ProviderUnavailable),
        (Failure(529, "overloaded"), ProviderUnavailable),
        (Raw(b"<html>gone</html>", 502, "text/html"), ProviderUnavailable),
        (Raw(b"", 401), ProviderRefused),
        (Raw(b'{"choices":'), ProviderUnavailable),
    ],
    ids=str,
)
async def test_the_status_says_who_must_act(
    model: ScriptedModel, answer: Answer, expected: type[ProviderError]
) -> None:
    error = await failing(model, answer)
    assert type(error) is expected
    assert (model.calls, error.spend.calls) == (1, 1)


@pytest.mark.parametrize(
    "answer",
    [
        Failure(402, "Payment required"),
        Failure(429, "You exceeded your current quota, please check your plan and billing details."),
        Failure(429, "anything", "insufficient_quota"),
        Failure(403, "Your account is not active, please check your billing details on our website."),
        Failure(400, "Your credit balance is too low to access the API."),
        Failure(429, "Insufficient balance"),
    ],
    ids=str,
)
async def test_an_empty_account_is_a_billing_refusal_whatever_the_status(model: ScriptedModel, answer: Failure) -> None:
    error = await failing(model, answer)
    assert isinstance(error, ProviderRefused)
    assert error.reason == "billing"
    assert answer.message in str(error)


def error_body(**error: Any) -> bytes:
    return json.dumps({"type": "error", "error": error}).encode()


@pytest.mark.parametrize(
    ("name", "answer", "expected", "reason"),
    [
        (
            "anthropic:claude-haiku-4-5",
            Raw(error_body(type="authentication_error", message="invalid x-api-key"), 401),
            ProviderRefused,
            "auth",
        ),
        (
            "anthropic:claude-haiku-4-5",
            Raw(error_body(type="invalid_request_error", message="Your credit balance is too low"), 400),
            ProviderRefused,
            "billing",
        ),
        (
            "anthropic:claude-haiku-4-5",
            Raw(error_body(type="overloaded_error", message="Overloaded"), 529),
            ProviderUnavailable,
            "",
        ),
        ("anthropic:claude-haiku-4-5", Raw(b"x" * 10_000_000), UnreadableAnswer, ""),
        (
            "google:gemini-2.5-flash",
            Raw(
                error_body(
                    code=400,
                    status="INVALID_ARGUMENT",
                    message="API key not valid",
                    details=[{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}],
                ),
                400,
            ),
            ProviderRefused,
            "auth",
        ),
        (
            "google:gemini-2.5-flash",
            Raw(
                error_body(
                    code=429,
                    status="RESOURCE_EXHAUSTED",
                    message=("You exceeded your current quota, please check your plan and billing details."),
                ),
                429,
            ),
            ProviderUnavailable,
            "",
        ),
        ("google:gemini-2.5-flash", Raw(b"x" * 10_000_000), UnreadableAnswer, ""),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_the_errors_of_each_provider_are_understood(
    model: ScriptedModel, name: str, answer: Raw, expected: type[ProviderError], reason: str
) -> None:
    error = await failing(model, answer, name=name)
    assert type(error) is expected
    assert getattr(error, "reason", "") == reason
    assert model.calls == 1


@pytest.mark.parametrize("answer", [Refusal("I can't help with that."), Filtered()], ids=str)
async def test_a_model_that_declines_is_not_asked_again(model: ScriptedModel, answer: Answer) -> None:
    error = await failing(model, answer)
    assert isinstance(error, UnreadableAnswer)
    assert "declined" in str(error)
    assert model.calls == 1
    assert error.spend.input_tokens > 0


@pytest.mark.parametrize("answer", [{"name": "x" * 10_000_000}, Raw(b"x" * 10_000_000)], ids=["name", "bytes"])
async def test_ten_megabytes_are_not_read_to_the_end(model: ScriptedModel, answer: Answer) -> None:
    error = await failing(model, answer)
    assert isinstance(error, UnreadableAnswer)
    assert f"{MAX_ANSWER_BYTES:,} bytes" in str(error)
    assert (model.calls, error.spend.calls) == (1, 1)


@pytest.mark.parametrize("body", [b"{}", b"[]", b"null", b'"hi"', b'{"choices": []}', b"\xff\xfe", b""], ids=repr)
async def test_an_answer_in_an_unknown_form_is_a_provider_error(model: ScriptedModel, body: bytes) -> None:
    error = await failing(model, Raw(body))
    assert type(error) in (UnreadableAnswer, ProviderUnavailable)


async def test_a_slow_model_is_provider_unavailable(model: ScriptedModel) -> None:
    model.answers.append(Late(30, {"name": "blue"}))
    async with opened(model.url, patience=1) as chat:
        with pytest.raises(ProviderUnavailable) as raised:
            await chat.ask(SKY, Colour)
        assert raised.value.spend.calls == 1
        assert (await chat.ask(SKY, Colour)).answer == BLUE


async def test_a_closed_port_is_provider_unavailable() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        async with opened(f"http://127.0.0.1:{unused.getsockname()[1]}/v1") as chat:
            with pytest.raises(ProviderUnavailable):
                await chat.ask(SKY, Colour)


async def test_the_key_never_appears_in_an_error(model: ScriptedModel) -> None:
    error = await failing(model, Failure(401, "Incorrect API key provided: secret-key."))
    assert "Incorrect API key" in str(error)
    assert "secret-key" not in str(error)


async def test_images_are_sent_as_images(model: ScriptedModel) -> None:
    images = (PIXEL, "https://pictures.test/cat")
    await ask(model, messages=Messages("Look.", "Two pictures.", images))
    assert model.requests[0].images == list(images)


async def test_a_rejected_image_does_not_lose_the_text(model: ScriptedModel) -> None:
    messages = Messages("Look.", "A picture.", ("https://pictures.test/gone",))
    answer = await ask(
        model, Failure(400, "Error while downloading the picture", "invalid_image_url"), messages=messages
    )
    assert answer == BLUE
    assert model.requests[1].images == []
    assert "could not be handed over" in model.requests[1].case


async def test_an_image_that_cannot_be_fetched_is_left_out(model: ScriptedModel) -> None:
    """Gemini takes no addresses of pictures: the client has to fetch them, and this one it may not."""
    model.answers.append(Failure(401, "the words arrived"))
    async with opened(model.url.removesuffix("/v1"), "google:gemini-2.5-flash") as chat:
        with pytest.raises(ProviderRefused, match="the words arrived"):
            await chat.ask(Messages("Look.", "A picture.", ("http://127.0.0.1:9/cat",)), Colour)
    assert "could not be handed over" in json.dumps(model.requests[0].body)


@pytest.mark.parametrize("status", [400, 422])
async def test_a_rejected_request_is_tried_in_each_way_to_a_structure_and_no_oftener(
    model: ScriptedModel, status: int
) -> None:
    error = await failing(model, *[Failure(status, f"bad {number}") for number in range(9)])
    assert isinstance(error, UnreadableAnswer)
    assert "bad 0" in str(error)
    assert (model.calls, error.spend.calls) == (3, 3)


async def test_any_unicode_text_arrives_and_lone_surrogates_are_replaced(model: ScriptedModel) -> None:
    await ask(model, messages=Messages("名前", "\ud800 🫖 \x00 чай"))
    assert (model.requests[0].instructions, model.requests[0].case) == ("名前", "? 🫖 \x00 чай")


async def test_closing_an_unused_chat_works() -> None:
    async with opened("http://127.0.0.1:9/v1"):
        pass
