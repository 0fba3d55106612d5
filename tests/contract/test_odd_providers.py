"""What servers with OpenAI's protocol do in the wild. Each is asked one question: it is answered, or refused in words.

The good answer holds one fact and one instruction. A behaviour is either read (`READ`), read after another question
(`REPAIRED`), or ends in an error whose class says who must act (`FAILING`).
"""

import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from email.utils import formatdate
from threading import Lock

import pytest
from pydantic import BaseModel, ConfigDict

from reflexio.errors import (
    ContextTooLong,
    ProviderError,
    ProviderUnavailable,
    UnreadableAnswer,
)
from reflexio.learners.llm.schemas import ExtractionAnswer
from reflexio.models.learning import ProfileTimeToLive
from reflexio.ports.chat import Messages, Reply
from reflexio.providers.chat.fields import Fields
from reflexio.providers.chat.reading import read_answer
from reflexio.providers.chat.resolve import DEFAULT_OPTIONS, CallOptions, ProviderCredentials, PydanticChat, resolve
from tests.contract import odd_server
from tests.contract.odd_answers import FACT, GOOD, READ, RULE, TEXT, call, calls, completion, text
from tests.contract.odd_failures import CUT, FAILING, REPAIRED, body
from tests.contract.odd_server import Behaviour
from tests.scripted_model import Answer, Asked, Failure, Raw, ScriptedModel, Spoken, scripted_model

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


async def test_names_in_another_case_are_read_on_every_level(model: ScriptedModel) -> None:
    fact = {"Evidence": {"Turn": 3, "Text": "in Oslo"}, "Type": "profile", "Content": "Oslo.", "timeToLive": "1 week"}
    rule = {"type": "playbook", "content": "Wait.", "metadata": {"Name": "Ann"}}
    model.answers.append(text(json.dumps({"Profiles": {"1": fact}, "PlayBooks": [rule]})))
    async with opened(model.url) as chat:
        answer = (await chat.ask(QUESTION, ExtractionAnswer)).answer
    assert [(fact.content, fact.evidence[0].text, fact.time_to_live) for fact in answer.profiles] == [
        ("Oslo.", "in Oslo", ProfileTimeToLive.ONE_WEEK)
    ]
    assert answer.playbooks[0].metadata == {"Name": "Ann"}


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


@pytest.mark.parametrize(
    ("words", "headers", "seconds"),
    [
        ("Rate limit reached", {"Retry-After": "7"}, 7.0),
        ("Rate limit reached", {"Retry-After": "soon"}, 0.0),
        ("Rate limit reached", {"Retry-After": "1.5"}, 2.0),
        ("Rate limit reached", {"Retry-After": "nan"}, 0.0),
        ("Rate limit reached", {"Retry-After": "-3"}, 0.0),
        ("Rate limit reached", {"Retry-After": "Mon, 01 Jan 2001 00:00:00 GMT"}, 0.0),
        ("Rate limit reached", {"Retry-After-Ms": "2500"}, 2.5),
        ("Rate limit reached. Please try again in 7.5s.", {}, 8.0),
        ("Rate limit reached. Please try again in 820ms.", {}, 1.0),
        ("Please wait for 2 minutes.", {}, 120.0),
    ],
)
async def test_a_rate_limit_says_how_long_to_wait(
    model: ScriptedModel, words: str, headers: dict[str, str], seconds: float
) -> None:
    model.answers.append(Failure(429, words, headers=headers))
    with pytest.raises(ProviderUnavailable) as raised:
        await ask(model.url)
    assert (raised.value.retry_after, raised.value.is_overloaded) == (seconds, True)


async def test_a_date_until_which_to_wait_is_honoured(model: ScriptedModel) -> None:
    model.answers.append(Failure(429, "slow", headers={"Retry-After": formatdate(time.time() + 100, usegmt=True)}))
    with pytest.raises(ProviderUnavailable) as raised:
        await ask(model.url)
    assert 50 < raised.value.retry_after <= 100


async def test_a_delay_in_the_details_of_an_error_is_honoured(model: ScriptedModel) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]
    model.answers.append(body([{"error": {"code": 429, "message": "Quota of a minute", "details": details}}], 429))
    with pytest.raises(ProviderUnavailable) as raised:
        await ask(model.url)
    assert raised.value.retry_after == 34.0


@pytest.mark.parametrize("most", [10, 3_000_000])
async def test_a_compressed_answer_is_read_up_to_the_same_length(model: ScriptedModel, most: int) -> None:
    padded = Raw(text(TEXT).body + b" " * most)
    compressed = Raw(gzip.compress(padded.body), encoding="gzip")
    model.otherwise = compressed
    if most == 10:
        assert (await ask(model.url)).answer == EXPECTED
    else:
        with pytest.raises(UnreadableAnswer, match="longer than"):
            await ask(model.url)


async def test_a_server_that_streams_and_knows_no_options_of_streams_is_read(model: ScriptedModel) -> None:
    def picky(asked: Asked) -> Answer:
        if not asked.body.get("stream"):
            return Failure(400, "This model only supports streaming.")
        return Failure(400, "Unknown parameter: 'stream_options'.") if "stream_options" in asked.body else GOOD

    model.otherwise = picky
    async with opened(model.url) as chat:
        assert (await chat.ask(QUESTION, Notes)).spend.calls == 3
        assert (await chat.ask(QUESTION, Notes)).spend.calls == 1


async def test_a_model_without_a_role_of_the_system_reads_the_instructions_all_the_same(model: ScriptedModel) -> None:
    def without_system(asked: Asked) -> Answer:
        return Failure(400, "System role not supported") if asked.instructions else GOOD

    model.otherwise = without_system
    async with opened(model.url) as chat:
        assert (await chat.ask(QUESTION, Notes)).answer == EXPECTED
        assert model.requests[-1].case == f"{QUESTION.instructions}\n\n{QUESTION.case}"
        assert (await chat.ask(QUESTION, Notes)).spend.calls == 1


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


@pytest.mark.parametrize(
    ("counted", "error"), [(2_048, ContextTooLong), (4_000, UnreadableAnswer), (7, UnreadableAnswer)]
)
async def test_a_prompt_that_a_server_shortens_in_silence_is_too_long(
    model: ScriptedModel, counted: int, error: type[UnreadableAnswer]
) -> None:
    usage = {"prompt_tokens": counted, "completion_tokens": 9}
    model.otherwise = completion({"content": "Hello! How can I help you today?"}, usage=usage)
    async with opened(model.url) as chat:
        with pytest.raises(UnreadableAnswer) as raised:
            await chat.ask(Messages("Note what matters. " * 700, "I moved to Oslo."), Notes)
    assert type(raised.value) is error
    assert ("its context is too short" in str(raised.value)) == (error is ContextTooLong)


@pytest.mark.parametrize(
    "unit",
    [
        '{"facts":[{"a":1},',
        '{"facts":[{"a":"b"}],',
        "{facts:[{'a':'b'},",
        "facts: [",
        "</think>{",
        '{"a":"{',
        "&quot;{",
    ],
)
def test_the_longest_answer_is_read_in_a_moment(unit: str) -> None:
    begun = time.process_time()
    read_answer([unit * (1_900_000 // len(unit))], Fields.of(Notes))
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("written", "facts"),
    [
        ('First {"facts": [1], "rules": []}, or rather {"facts": [2], "rules": []}.', [2]),
        ('{"facts": [1], "rules": []} {"facts": [2], "rules": []}', [1, 2]),
        ('{"facts": [1], "rules": []}\nAn example of a fact: {"content": "x"}', [1]),
        ('</think>{"facts": [2], "rules": [{"content": "cu', [2]),
        ('<think>{"facts": [1], "rules": []}</think>{"facts": [2], "ru', [2]),
        ("facts: [1] is wrong, so facts: [2]\nrules: []", [2]),
    ],
)
def test_the_last_word_counts(written: str, facts: list[int]) -> None:
    assert read_answer([written], Fields.of(Notes)).values["facts"] == facts


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
