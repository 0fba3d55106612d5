"""An open client for one model: the call, what is done when it is rejected, one repair of its answer, its cost.

Imports pydantic-ai: import it late.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from pydantic import BaseModel, ValidationError
from pydantic_ai import BinaryContent, ImageUrl, ModelRequest, UserContent, UserPromptPart
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelResponse, ThinkingPart
from pydantic_ai.settings import ModelSettings

from reflexio.errors import ContextTooLong, Declined, ProviderRefused, UnreadableAnswer
from reflexio.models.extraction import Spend
from reflexio.ports.chat import CHARACTERS_PER_TOKEN, A, Messages, Reply, estimate
from reflexio.providers.chat.adjustment import NO_IMAGES, RequestHabits
from reflexio.providers.chat.connection import IS_QUESTION, build_model, connect
from reflexio.providers.chat.failures import FAILURES, failure, is_about_account, is_rejected
from reflexio.providers.chat.fields import Fields
from reflexio.providers.chat.reading import ReadAnswer, merged, read_answer
from reflexio.providers.chat.resolve import ModelAddress, StructuredOutput, reasoning_effort
from reflexio.providers.chat.structure import answer_parameters, framed

log = logging.getLogger("reflexio.model")

MOST_ADJUSTMENTS = 6
MAX_FAULTS = 5
LEAST_CONTEXT, MOST_CHARACTERS_PER_TOKEN = 1_000, 5.5
"""A server that counts at least so many tokens, and fewer than the text can have, has not read all of it. Smaller
counts may leave out what was cached."""
IN_WORDS = "it is no JSON object with the fields asked for"
CUT_OFF = "it was cut off, because it was too long"


@dataclass(frozen=True)
class _Completion:
    """A response, the prompt that led to it, and what everything has cost so far."""

    response: ModelResponse
    messages: Messages
    way: StructuredOutput
    spend: Spend


class ChatSession:
    """An open client for one model. It never retries a failed call unchanged: the caller decides when to.

    A rejected question is adjusted, and asked again at once.
    """

    def __init__(self, address: ModelAddress) -> None:
        self._address = address
        options = address.options
        self._http = connect(address)
        try:
            self._model = build_model(address, self._http)
        except UserError as error:
            raise ProviderRefused(f"{address.name}: {error.message}", reason="auth") from error
        self._settings = ModelSettings(
            timeout=options.timeout, request_timeout=options.timeout, cache={"messages": False}
        )
        if address.protocol != "openai":
            self._settings["max_tokens"] = options.max_output_tokens
        self._habits = RequestHabits(address)
        self._effort = reasoning_effort(self._model.profile)
        self._has_answered = False

    @property
    def structured_output(self) -> str:
        """The way that led to the last answer; empty before the first one."""
        return self._habits.way if self._has_answered else ""

    async def ask(self, messages: Messages, schema: type[A]) -> Reply[A]:
        """Asks, and once more when the answer cannot be used; or oftener, while the way to a structure is sought."""
        fields, asked, spend = _fields(schema), messages, Spend(self._address.name)
        part, is_repaired = ReadAnswer(), False
        while True:
            completed = await self._complete(asked, schema, spend)
            spend = completed.spend
            self._check_declined(completed)
            read = _read(completed.response, fields)
            whole = ReadAnswer(merged([part.values, read.values], fields), read.is_cut or part.is_cut)
            answer, faults = _validated(whole, schema, fields, is_final=is_repaired)
            if answer is not None:
                return self._finish(answer, spend, is_part=read.is_cut or read.is_empty)
            # A model that answers in plain words may not have seen what it was asked for.
            is_ignored = read.is_empty and not read.is_cut and not completed.response.tool_calls
            is_sought = is_ignored and not self._habits.is_proven and self._habits.seek_way(completed.way)
            if is_repaired and not is_sought:
                raise self._unusable(completed, faults)
            part = whole if whole.is_cut else ReadAnswer()
            asked, is_repaired = _repair(completed.messages, messages, faults, part), True

    def _finish(self, answer: A, spend: Spend, *, is_part: bool) -> Reply[A]:
        if is_part:
            log.warning("%s: an answer was cut off; only its complete entries are used", self._address.name)
        self._habits.is_proven = self._has_answered = True
        return Reply(answer, spend)

    def _unusable(self, completed: _Completion, faults: str) -> UnreadableAnswer:
        """The error for an answer that stayed unusable. Some servers drop the beginning of a long prompt."""
        usage, name = completed.response.usage, self._address.name
        length = len(completed.messages.instructions) + len(completed.messages.case)
        is_counted = not usage.unmeasured_requests and usage.input_tokens >= LEAST_CONTEXT
        if is_counted and length > MOST_CHARACTERS_PER_TOKEN * usage.input_tokens:
            words = f"it has read {usage.input_tokens} tokens of a prompt of about {length // CHARACTERS_PER_TOKEN}"
            return ContextTooLong(f"{name}: {words}; its context is too short", spend=completed.spend)
        return UnreadableAnswer(f"{name}: {faults}", spend=completed.spend)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _complete(self, messages: Messages, schema: type[A], spent: Spend) -> _Completion:
        """The response; a rejected request is adjusted and asked again."""
        habits, first_way, failures = self._habits, self._habits.way, list[Exception]()
        while len(failures) < MOST_ADJUSTMENTS:
            spent += Spend(calls=1)
            way = habits.way
            try:
                response = await self._request(messages, schema, way)
                return _Completion(response, messages, way, spent + _count_tokens(response, messages))
            except FAILURES as error:
                failures.append(error)
                adjusted = habits.adjusted(messages, way, error)
                if adjusted is None:
                    break
                messages = adjusted
        if not habits.is_proven:
            habits.way = first_way
        first, last = failures[0], failures[-1]
        # When every way is rejected, the first rejection says most; any other failure is what happened last.
        is_exhausted = is_rejected(first) and is_rejected(last) and not is_about_account(last)
        raise failure(first if is_exhausted else last, self._address, spent) from last

    async def _request(self, messages: Messages, schema: type[A], way: StructuredOutput) -> ModelResponse:
        timeout = self._address.options.timeout
        asked = self._habits.placed(framed(messages, schema, way))
        request = ModelRequest([UserPromptPart(_content(asked))], instructions=sendable(asked.instructions) or None)
        token = IS_QUESTION.set(True)
        try:
            # The client's own limit counts each byte anew: a server that sends one a second would keep it for ever.
            async with asyncio.timeout(timeout):
                return await model_request(
                    self._model,
                    [request],
                    model_settings=self._habits.settings(self._settings, self._effort),
                    model_request_parameters=answer_parameters(schema, way),
                )
        except TimeoutError as error:
            raise TimeoutError(f"no complete answer within {timeout:g} s") from error
        finally:
            IS_QUESTION.reset(token)

    def _check_declined(self, completed: _Completion) -> None:
        if completed.response.finish_reason == "content_filter":
            details = completed.response.provider_details or {}
            refusal = "" if self._address.addresses else details.get("refusal", "")
            words = " ".join(str(refusal).split())
            raise Declined(f"{self._address.name}: {words}".strip(": "), spend=completed.spend)


def _texts(response: ModelResponse) -> Iterator[list[str]]:
    """What the answer may stand in: the arguments of tool calls, the text, and last what was thought aloud."""
    yield [part.args_as_json_str() if isinstance(part.args, dict) else part.args or "" for part in response.tool_calls]
    yield [response.text or ""]
    yield [part.content for part in response.parts if isinstance(part, ThinkingPart)]


def _read(response: ModelResponse, fields: Fields) -> ReadAnswer:
    has_hit_limit, is_cut = response.finish_reason == "length", False
    for texts in _texts(response):
        read = read_answer(texts, fields)
        is_cut = is_cut or read.is_cut or (read.lacks_end and has_hit_limit)
        if not read.is_empty:
            return replace(read, is_cut=is_cut)
    return ReadAnswer(is_cut=is_cut or has_hit_limit)


def _validated(read: ReadAnswer, schema: type[A], fields: Fields, *, is_final: bool) -> tuple[A | None, str]:
    """The answer, or what is wrong with it. A part of an answer is used when there will be no other."""
    if read.is_cut and not (is_final and read.values):
        return None, CUT_OFF
    if read.is_empty:
        return None, IN_WORDS
    missing: dict[str, list[object]] = {name: [] for name in fields.lists} if read.is_cut else {}
    try:
        return schema.model_validate({**missing, **read.values}), ""
    except ValidationError as error:
        return None, _faults(error)


def _repair(asked: Messages, question: Messages, faults: str, kept: ReadAnswer) -> Messages:
    """Without a word of the answer itself: that could carry text out of its delimiters."""
    count = sum(len(value) for value in kept.values.values() if isinstance(value, list))
    request = f"Your last answer could not be used: {faults}. Answer again, in the form asked for."
    if kept.is_cut and count:
        request = (
            f"Your last answer was cut off, because it was too long. Its first {count} entries arrived. Answer again, "
            "in the form asked for, with the other entries only, the most important ones first, in few words."
        )
    elif kept.is_cut:
        request += " Be brief: think little, and give only the most important entries, in few words."
    images_lost = question.images and not asked.images
    case = question.case + NO_IMAGES if images_lost else question.case
    return replace(asked, case=f"{case}\n\n{request}")


@cache
def _fields(schema: type[BaseModel]) -> Fields:
    return Fields.of(schema)


def sendable(text: str) -> str:
    """Lone surrogates cannot be sent and become question marks."""
    return text.encode("utf-8", "replace").decode()


def _content(messages: Messages) -> str | Sequence[UserContent]:
    case = sendable(messages.case)
    images = [
        BinaryContent.from_data_uri(image) if image.startswith("data:") else ImageUrl(image)
        for image in messages.images
    ]
    return [case, *images] if images else case


def _count_tokens(response: ModelResponse, messages: Messages) -> Spend:
    """The provider's count; an estimate for servers that do not count, so that a budget holds with them, too."""
    usage = response.usage
    if not usage.unmeasured_requests:
        return Spend(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
    output = "".join(part.args_as_json_str() for part in response.tool_calls) + (response.text or "")
    prompt = estimate(messages.instructions + messages.case)
    return Spend(input_tokens=prompt, output_tokens=estimate(output), estimated_calls=1)


def _faults(error: ValidationError) -> str:
    lines = []
    for fault in error.errors(include_url=False, include_context=False, include_input=False)[:MAX_FAULTS]:
        # An unexpected field has a name that the model chose; only names of ours are shown.
        place = fault["loc"][:-1] if fault["type"] == "extra_forbidden" else fault["loc"]
        lines.append(f"{'.'.join(map(str, place)) or 'answer'}: {fault['msg']}")
    return "; ".join(lines)
