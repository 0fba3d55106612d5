"""What servers with OpenAI's protocol do in the wild. Each is asked one question: it is answered, or refused in words.

The good answer holds one fact and one instruction. A behaviour is either read (`READ`), read after another question
(`REPAIRED`), or ends in an error whose class says who must act (`FAILING`).
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from threading import Lock
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
from reflexio.ports.chat import Messages, Reply
from reflexio.providers.chat.reading import Fields, read_answer
from reflexio.providers.chat.resolve import DEFAULT_OPTIONS, CallOptions, ProviderCredentials, PydanticChat, resolve
from tests.contract import odd_server
from tests.contract.odd_server import Behaviour
from tests.scripted_model import Answer, Asked, Failure, Filtered, Raw, Refusal, ScriptedModel, Spoken, scripted_model

FACT = {"content": "Lives in Oslo.", "quote": "I moved to Oslo"}
RULE = {"content": "Offer a pickup point.", "quote": "then I'd rather\nfetch it"}
GOOD = {"facts": [FACT], "rules": [RULE]}
TEXT = json.dumps(GOOD)
QUESTION = Messages("Note what matters.", "I moved to Oslo; then I'd rather fetch it.")
PATIENCE = CallOptions(timeout=0.3)


class Note(BaseModel):
    content: str
    quote: str


class Notes(BaseModel):
    model_config = ConfigDict(extra="forbid")
    facts: list[Note]
    rules: list[Note]


EXPECTED = Notes.model_validate(GOOD)


def completion(message: dict[str, Any], finish: str | None = "stop", **more: Any) -> Raw:
    """A whole response; a value of `...` leaves the field out."""
    usage = {"prompt_tokens": 700, "completion_tokens": 50, "total_tokens": 750}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    body |= {"choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}], **more}
    return Raw(json.dumps({name: value for name, value in body.items() if value is not ...}).encode())


def call(arguments: Any, **more: Any) -> dict[str, Any]:
    made = {"id": "c", "type": "function", "function": {"name": "answer", "arguments": arguments}, **more}
    return {name: value for name, value in made.items() if value is not ...}


def calls(*made: dict[str, Any], finish: str | None = "tool_calls", **more: Any) -> Raw:
    return completion({"content": None, "tool_calls": list(made)}, finish, **more)


def text(words: Any, finish: str | None = "stop", **more: Any) -> Raw:
    return completion({"content": words, **more}, finish)


def stream(*deltas: dict[str, Any]) -> Raw:
    chunks = [{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    lines = [": keep-alive", *(f"data: {json.dumps(chunk)}" for chunk in chunks), "data: [DONE]"]
    return Raw("\n\n".join(lines).encode(), content_type="text/event-stream")


READ: dict[str, Raw] = {
    "a tool call": calls(call(TEXT)),
    "arguments as an object": calls(call(GOOD)),
    "arguments encoded twice": calls(call(json.dumps(TEXT))),
    "arguments and then a tag": calls(call(TEXT + "\n</function>")),
    "a raw line break in a string": calls(call(TEXT.replace("\\n", "\n"))),
    "a trailing comma": calls(call(TEXT[:-1] + ",}")),
    "one call for each list": calls(
        call(json.dumps({"facts": [FACT], "rules": []})), call({"rules": [RULE], "facts": []})
    ),
    "the same call twice": calls(call(TEXT), call(TEXT)),
    "another name of the tool": calls({"id": "c", "type": "function", "function": {"name": "f.x", "arguments": TEXT}}),
    "a call without id": calls(call(TEXT, id=...)),
    "a call with the id null": calls(call(TEXT, id=None)),
    "a call without type": calls(call(TEXT, type=...)),
    "the older function_call": completion({"content": None, "function_call": {"name": "answer", "arguments": TEXT}}),
    "no usage": calls(call(TEXT), usage=...),
    "usage null": calls(call(TEXT), usage=None),
    "usage of zeros": calls(call(TEXT), usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
    "usage in words": calls(call(TEXT), usage={"prompt_tokens": "many", "details": None}),
    "no id, time and model": calls(call(TEXT), id=..., created=..., model=..., object=...),
    "finish null": calls(call(TEXT), finish=None),
    "finish of another kind": calls(call(TEXT), finish="end_turn"),
    "finish length with a whole answer": calls(call(TEXT), finish="length"),
    "wrapped in the name of the tool": calls(call(json.dumps({"answer": GOOD}))),
    "wrapped twice": calls(call(json.dumps({"arguments": json.dumps({"result": GOOD})}))),
    "a field more": calls(call(json.dumps({**GOOD, "thoughts": "hm"}))),
    "lists as strings": calls(call({name: json.dumps(value) for name, value in GOOD.items()})),
    "entries as strings": calls(call({name: [json.dumps(value[0])] for name, value in GOOD.items()})),
    "JSON as text": text(TEXT),
    "JSON in a fence between words": text(f"Of course {{name}}!\n```json\n{TEXT}\n```\nAnything {{else}}?"),
    "thoughts before": text(f"<think>Is {{facts: …}} right?</think>{TEXT}"),
    "thoughts without a beginning": text(f'Maybe {{"facts": []}}? No.\n</think>\n\n{TEXT}'),
    "a call written as text": text(f"<tool_call>{json.dumps({'name': 'answer', 'arguments': GOOD})}</tool_call>"),
    "content in parts": text([{"type": "text", "text": TEXT[:30]}, {"type": "text", "text": TEXT[30:]}]),
    "the answer among the thoughts": text(None, reasoning_content=f"So: {TEXT}"),
    "thoughts apart": text(TEXT, reasoning_content='{"facts": []}'),
    "a stream that nobody asked for": stream({"role": "assistant", "content": TEXT[:20]}, {"content": TEXT[20:]}),
    "a stream with a tool call": stream(
        {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "answer", "arguments": TEXT[:9]}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": TEXT[9:]}}]},
    ),
}

CUT = len(TEXT) - 20  # in the middle of the rule
REPAIRED: dict[str, Answer] = {
    "empty arguments": calls(call("")),
    "an empty object": calls(call("{}")),
    "null for lists": calls(call('{"facts": null, "rules": null}')),
    "words": Spoken("There is nothing to note here."),
    "content null": text(None),
    "content empty": text(""),
    "cut off in a call": calls(call(TEXT[:CUT]), finish="length"),
    "cut off in the text": text(TEXT[:CUT], finish="length"),
    "cut off while it was thinking": text("<think>Let me {see", finish="length"),
    "a rejected tool_choice": Failure(400, "tool_choice 'required' is not supported while thinking"),
    "tools that need a flag": Failure(500, "tools param requires a chat template (--jinja)"),
    "tools that are unknown": Failure(400, "this model does not support tools"),
    "no endpoint with tools": Failure(404, "No endpoints found that support tool use"),
    "a rejected schema": Failure(400, "Invalid schema for function 'answer'", "invalid_function_parameters"),
    "a rejection without a reason": Failure(400, "Bad Request"),
    "only streams": Failure(400, "This model only supports stream mode, set stream to true."),
    "a limit of another name": Failure(
        400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    ),
    "a limit that is too high": Failure(400, "max_tokens is too large: 16000. At most 4096 are possible."),
    "a context for both": Failure(400, "maximum context length is 8192 tokens, however you requested 16200"),
}

FAILING: dict[str, tuple[Answer, type[ProviderError], str]] = {
    "no choices": (completion({}, choices=[]), ProviderUnavailable, "without a message"),
    "choices null": (completion({}, choices=None), ProviderUnavailable, "without a message"),
    "an error with status 200": (
        Raw(b'{"error": {"message": "upstream is away", "code": 502}}'),
        ProviderUnavailable,
        "upstream is away",
    ),
    "a rate limit with status 200": (
        Raw(b'{"error": {"message": "slow down", "type": "rate_limit_error"}}'),
        ProviderUnavailable,
        "slow down",
    ),
    "a refused key with status 200": (
        Raw(b'{"error": {"message": "who are you", "code": "401"}}'),
        ProviderRefused,
        "who are you",
    ),
    "a web page": (Raw(b"<html>Welcome</html>", content_type="text/html"), ProviderUnavailable, "else than JSON"),
    "nothing": (Raw(b""), ProviderUnavailable, "nothing"),
    "another kind of JSON": (Raw(b"[1, 2]"), ProviderUnavailable, "else than JSON"),
    "a redirect": (Raw(b"", 307), ProviderRefused, "redirects"),
    "a refusal": (Refusal("I will not."), Declined, "I will not"),
    "a content filter": (Filtered(), Declined, "declined"),
    "a filtered prompt": (Failure(400, "triggering the content management policy"), Declined, "policy"),
    "a context that is too short": (
        Failure(400, "the request exceeds the available context size, try increasing it"),
        ContextTooLong,
        "context size",
    ),
    "a body that is too long": (Failure(413, "Payload too large"), ContextTooLong, "too large"),
    "a wrong key": (Failure(401, "no such key"), ProviderRefused, "no such key"),
    "an unknown model": (Failure(404, "model 'x' not found"), ProviderRefused, "not found"),
    "an empty account": (Failure(402, "Insufficient Balance"), ProviderRefused, "Balance"),
    "an empty account as a limit": (Failure(429, "You exceeded your current quota"), ProviderRefused, "quota"),
    "a model that loads": (Failure(503, "Loading model"), ProviderUnavailable, "Loading"),
    "a server error": (Failure(500, "oops"), ProviderUnavailable, "oops"),
    "a bad gateway": (Raw(b"<html>Bad gateway</html>", 502, "text/html"), ProviderUnavailable, "502"),
}


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with scripted_model(otherwise=GOOD) as served:
        yield served


@asynccontextmanager
async def opened(url: str, options: CallOptions = DEFAULT_OPTIONS) -> AsyncIterator[PydanticChat]:
    chat = resolve("openai:odd", keys={"openai": ProviderCredentials("secret-key", url)}, options=options)
    try:
        yield chat
    finally:
        await chat.aclose()


async def ask(url: str, options: CallOptions = DEFAULT_OPTIONS) -> Reply[Notes]:
    async with opened(url, options) as chat:
        return await chat.ask(QUESTION, Notes)


@pytest.mark.parametrize("behaviour", READ)
async def test_a_good_answer_is_read_whatever_it_is_wrapped_in(model: ScriptedModel, behaviour: str) -> None:
    model.answers.append(READ[behaviour])
    reply = await ask(model.url)
    assert reply.answer == EXPECTED
    assert model.calls == reply.spend.calls == 1
    assert reply.spend.input_tokens > 0


@pytest.mark.parametrize("behaviour", [name for name in READ if name.startswith(("no usage", "usage"))])
async def test_tokens_that_nobody_counted_are_marked_as_estimated(model: ScriptedModel, behaviour: str) -> None:
    model.answers.append(READ[behaviour])
    assert (await ask(model.url)).spend.estimated_calls == 1


async def test_counted_tokens_are_exact_and_not_marked(model: ScriptedModel) -> None:
    model.answers.append(READ["a tool call"])
    spend = (await ask(model.url)).spend
    assert (spend.input_tokens, spend.output_tokens, spend.estimated_calls) == (700, 50, 0)


@pytest.mark.parametrize("behaviour", REPAIRED)
async def test_what_cannot_be_used_is_asked_for_once_more(model: ScriptedModel, behaviour: str) -> None:
    model.answers.append(REPAIRED[behaviour])
    reply = await ask(model.url)
    assert reply.answer == EXPECTED
    assert model.calls == reply.spend.calls == 2


@pytest.mark.parametrize("behaviour", FAILING)
async def test_what_cannot_be_helped_says_who_must_act(model: ScriptedModel, behaviour: str) -> None:
    answer, expected, words = FAILING[behaviour]
    model.otherwise = answer
    with pytest.raises(ProviderError) as raised:
        await ask(model.url)
    assert type(raised.value) is expected
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 500
    assert raised.value.spend.calls == model.calls <= 3


@pytest.mark.parametrize(
    "behave", [odd_server.drip, odd_server.hang, odd_server.hang_after_head, odd_server.hang_up, odd_server.end_early]
)
async def test_a_connection_that_breaks_or_never_ends_is_given_up(behave: Behaviour) -> None:
    async with odd_server.odd_server(behave) as url:
        async with asyncio.timeout(10):
            with pytest.raises(ProviderUnavailable) as raised:
                await ask(url, PATIENCE)
    assert not raised.value.is_overloaded


@pytest.mark.parametrize(("wait", "seconds"), [("7", 7.0), ("soon", 0.0)])
async def test_a_rate_limit_says_how_long_to_wait(model: ScriptedModel, wait: str, seconds: float) -> None:
    model.answers.append(Failure(429, "Rate limit reached", headers={"Retry-After": wait}))
    with pytest.raises(ProviderUnavailable) as raised:
        await ask(model.url)
    assert (raised.value.retry_after, raised.value.is_overloaded) == (seconds, True)


async def test_complete_entries_of_a_cut_answer_are_used_and_the_rest_is_asked_for(model: ScriptedModel) -> None:
    other = {"content": "Call before noon.", "quote": "I moved"}
    model.answers += [text(TEXT[:CUT], finish="length"), calls(call({"facts": [], "rules": [other]}))]
    answer = (await ask(model.url)).answer
    assert answer.model_dump() == {"facts": [FACT], "rules": [other]}
    assert "cut off" in model.requests[1].case
    assert "first 1 entries" in model.requests[1].case


async def test_an_answer_that_is_cut_twice_keeps_what_was_complete(model: ScriptedModel) -> None:
    model.otherwise = text(TEXT[:CUT], finish="length")
    assert (await ask(model.url)).answer.model_dump() == {"facts": [FACT], "rules": []}
    assert model.calls == 2


@pytest.mark.parametrize("end", range(len(TEXT)))
def test_half_an_entry_is_never_used(end: int) -> None:
    read = read_answer([TEXT[:end]], Fields.of(Notes)).values
    assert read.get("facts", []) in ([], [FACT])
    assert read.get("rules", []) in ([], [RULE])


def without_tools(asked: Asked) -> Answer:
    """A server whose template drops tools: the model sees the words alone, and a schema where the format has one."""
    return GOOD if asked.body.get("response_format") else Spoken("You moved to Oslo, how nice!")


def words_only(asked: Asked) -> Answer:
    """A server that ignores tools and formats; the model follows a schema that stands in its prompt."""
    return Spoken(f"Here:\n{TEXT}") if "JSON schema" in asked.instructions else Spoken("You moved to Oslo!")


def rejecting(asked: Asked) -> Answer:
    is_asked_in_words = not asked.body.get("tools") and not asked.body.get("response_format")
    return Spoken(TEXT) if is_asked_in_words else Failure(400, "unknown field")


@pytest.mark.parametrize(
    ("server", "way", "tries"), [(without_tools, "json_schema", 2), (words_only, "prompt", 3), (rejecting, "prompt", 3)]
)
async def test_a_way_to_a_structured_answer_is_found_and_remembered(
    model: ScriptedModel, server: Callable[[Asked], Answer], way: str, tries: int
) -> None:
    model.otherwise = server
    async with opened(model.url) as chat:
        assert (await chat.ask(QUESTION, Notes)).answer == EXPECTED
        assert (model.calls, chat.structured_output) == (tries, way)
        assert (await chat.ask(QUESTION, Notes)).spend.calls == 1


async def test_many_questions_at_once_find_the_same_way(model: ScriptedModel) -> None:
    model.otherwise = without_tools
    async with opened(model.url) as chat:
        replies = await asyncio.gather(*(chat.ask(QUESTION, Notes) for _ in range(8)))
        assert [reply.answer for reply in replies] == [EXPECTED] * 8
        assert chat.structured_output == "json_schema"


async def test_a_way_that_works_is_kept_when_one_answer_is_not_usable(model: ScriptedModel) -> None:
    model.answers += [GOOD, Spoken("Sure, here it comes."), GOOD]
    async with opened(model.url) as chat:
        for _ in range(2):
            assert (await chat.ask(QUESTION, Notes)).answer == EXPECTED
        assert chat.structured_output == "tools"


async def test_a_configured_way_is_the_only_one(model: ScriptedModel) -> None:
    model.otherwise = Spoken("no")
    with pytest.raises(UnreadableAnswer):
        await ask(model.url, CallOptions(structured_output="prompt"))
    assert all("tools" not in asked.body for asked in model.requests)
    assert "JSON schema" in model.requests[0].instructions


async def test_a_limit_of_the_output_is_always_sent(model: ScriptedModel) -> None:
    await ask(model.url, CallOptions(max_output_tokens=1234))
    assert model.requests[0].body["max_tokens"] == 1234


async def test_a_server_with_one_slot_gets_one_question_at_a_time(model: ScriptedModel) -> None:
    slot = Lock()

    def one_at_a_time(asked: Asked) -> Answer:
        if not slot.acquire(blocking=False):
            return Failure(503, "the slot is taken")
        try:
            model.stopping.wait(0.02)
            return GOOD
        finally:
            slot.release()

    model.otherwise = one_at_a_time
    async with opened(model.url, CallOptions(concurrency=1)) as chat:
        replies = await asyncio.gather(*(chat.ask(QUESTION, Notes) for _ in range(8)))
    assert [reply.answer for reply in replies] == [EXPECTED] * 8
