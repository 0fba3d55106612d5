"""The contract of every chat model."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from reflexio.errors import ProviderError, ProviderRefused, ProviderUnavailable, UnreadableAnswer
from reflexio.ports.chat import Chat, Messages
from reflexio.providers.chat.resolve import ProviderCredentials, resolve
from reflexio.providers.scripted import ScriptedChat
from tests.scripted_model import Failure, scripted_model

SKY = Messages("Name the colour.", "The sky at noon.")
BLUE = {"name": "blue"}
REFUSED = Failure(401, "no such key"), ProviderRefused("no such key", reason="auth")
EMPTY = Failure(429, "no credit", "insufficient_quota"), ProviderRefused("no credit", reason="billing")
BUSY = Failure(429, "slower", headers={"Retry-After": "7"}), ProviderUnavailable("slower", retry_after=7)
DOWN = Failure(503, "down"), ProviderUnavailable("down")

Line = dict[str, Any] | str | tuple[Failure, ProviderError]
Make = Callable[..., Chat]


class Colour(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str


@pytest.fixture(params=["scripted", "pydantic-ai"])
async def make(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    """Builds a chat that answers with these lines. A failure has two forms: an HTTP answer, and its error."""
    chats: list[Chat] = []
    with ExitStack() as stack:

        def over_http(*lines: Line) -> Chat:
            answers = [line[0] if isinstance(line, tuple) else line for line in lines]
            served = stack.enter_context(scripted_model(answers))
            return resolve("openai:loopback", keys={"openai": ProviderCredentials("key", served.url)})

        def twin(*lines: Line) -> Chat:
            return ScriptedChat([line[1] if isinstance(line, tuple) else line for line in lines])

        def remembered(*lines: Line) -> Chat:
            chats.append(twin(*lines) if request.param == "scripted" else over_http(*lines))
            return chats[-1]

        yield remembered
        for chat in chats:
            await chat.aclose()


async def test_an_answer_follows_the_schema_and_has_its_cost(make: Make) -> None:
    chat = make(BLUE)
    reply = await chat.ask(SKY, Colour)
    assert reply.answer == Colour(name="blue")
    assert (reply.spend.model, reply.spend.calls) == (chat.name, 1)
    assert reply.spend.input_tokens > 5
    assert reply.spend.output_tokens > 0


@pytest.mark.parametrize(
    "nonsense",
    ["", "I think it is blue.", '{"name": "bl', '{"colour": "blue"}', {"name": 7}, {}, "[]", "null", "青い"],
    ids=str,
)
async def test_an_answer_that_does_not_fit_is_repaired_once(make: Make, nonsense: Line) -> None:
    reply = await make(nonsense, BLUE).ask(SKY, Colour)
    assert reply.answer == Colour(name="blue")
    assert reply.spend.calls == 2


async def test_a_repair_is_paid_for_twice(make: Make) -> None:
    once = await make(BLUE).ask(SKY, Colour)
    twice = await make({}, BLUE).ask(SKY, Colour)
    assert twice.spend.input_tokens > 2 * once.spend.input_tokens


async def test_a_repair_that_does_not_fit_either_is_unreadable(make: Make) -> None:
    with pytest.raises(UnreadableAnswer, match="name") as raised:
        await make({"name": 7}, {"name": 8}, BLUE).ask(SKY, Colour)
    assert raised.value.spend.calls == 2
    assert raised.value.spend.input_tokens > 0


@pytest.mark.parametrize(
    ("line", "expected", "reason"), [(REFUSED, "no such key", "auth"), (EMPTY, "no credit", "billing")]
)
async def test_a_refusal_distinguishes_key_and_bill_and_quotes_the_provider(
    make: Make, line: Line, expected: str, reason: str
) -> None:
    with pytest.raises(ProviderRefused, match=expected) as raised:
        await make(line).ask(SKY, Colour)
    assert raised.value.reason == reason
    assert raised.value.spend.calls == 1


@pytest.mark.parametrize(("line", "wait"), [(BUSY, 7.0), (DOWN, 0.0)])
async def test_an_overloaded_provider_says_how_long_to_wait(make: Make, line: Line, wait: float) -> None:
    with pytest.raises(ProviderUnavailable) as raised:
        await make(line, BLUE).ask(SKY, Colour)
    assert raised.value.retry_after == wait


async def test_a_failed_repair_includes_the_cost_of_the_first_call(make: Make) -> None:
    with pytest.raises(ProviderUnavailable) as raised:
        await make({}, DOWN).ask(SKY, Colour)
    assert raised.value.spend.calls == 2
    assert raised.value.spend.input_tokens > 0


async def test_a_chat_works_after_an_error(make: Make) -> None:
    chat = make(DOWN, BLUE)
    with pytest.raises(ProviderUnavailable):
        await chat.ask(SKY, Colour)
    assert (await chat.ask(SKY, Colour)).answer == Colour(name="blue")


async def test_concurrent_callers_are_all_answered(make: Make) -> None:
    chat = make(*({"name": str(number)} for number in range(20)))
    replies = await asyncio.gather(*(chat.ask(SKY, Colour) for _ in range(20)))
    assert sorted(int(reply.answer.name) for reply in replies) == list(range(20))


async def test_the_name_says_provider_and_model(make: Make) -> None:
    provider, _, model = make().name.partition(":")
    assert provider
    assert model
