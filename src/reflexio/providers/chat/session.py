"""One question to a model: the call, one repair, what it cost. Imports pydantic-ai, so import this late."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import httpx2
from pydantic import ValidationError
from pydantic_ai import BinaryContent, ImageUrl, ModelRequest, UserContent, UserPromptPart
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_core import ErrorDetails

from reflexio.errors import ProviderRefused, UnreadableAnswer
from reflexio.models.learned import Spend
from reflexio.ports.chat import A, Messages, Reply, estimate
from reflexio.providers.chat.connection import connect
from reflexio.providers.chat.endpoints import model_at
from reflexio.providers.chat.failures import FAILURES, failure, is_about_pictures
from reflexio.providers.chat.reading import Declined, parameters, read
from reflexio.providers.chat.resolve import Address

# Anthropic wants to be told. Above some 21,000 its client would stream, and a stream is many times as long.
ANTHROPIC_MOST_TOKENS = 16_000
FAULTS_SHOWN = 5
NO_PICTURES = "\n\n(The pictures could not be handed over.)"


class Session:
    """An open client for one model. It never tries again by itself: who calls decides when."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._http = connect(address.timeout)
        self._model = _model(address, self._http)
        self._settings = _settings(address)

    async def ask(self, messages: Messages, shape: type[A]) -> Reply[A]:
        first = await self._call(messages, shape, Spend(self._address.name))
        try:
            return Reply(self._read(first, shape), first.spend)
        except ValidationError as error:
            again = replace(first.messages, case=first.messages.case + _complaint(error))
        second = await self._call(again, shape, first.spend)
        try:
            return Reply(self._read(second, shape), second.spend)
        except ValidationError as error:
            raise UnreadableAnswer(f"{self._address.name}: {_faults(error)}", spend=second.spend) from error

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _call(self, messages: Messages, shape: type[A], spent: Spend) -> "_Answer":
        """A picture that the provider cannot fetch or read must not keep the words from being learned."""
        asked = spent + Spend(calls=1)
        try:
            response = await self._request(messages, shape)
        except FAILURES as error:
            if messages.images and is_about_pictures(error):
                return await self._call(replace(messages, case=messages.case + NO_PICTURES, images=()), shape, asked)
            raise failure(error, self._address, asked) from error
        return _Answer(response, messages, asked + _tokens(response, messages))

    async def _request(self, messages: Messages, shape: type[A]) -> ModelResponse:
        request = ModelRequest(parts=[UserPromptPart(_content(messages))], instructions=sendable(messages.instructions))
        wanted = parameters(shape)
        return await model_request(
            self._model, [request], model_settings=self._settings, model_request_parameters=wanted
        )

    def _read(self, answer: "_Answer", shape: type[A]) -> A:
        try:
            return read(answer.response, shape)
        except Declined as declined:
            raise UnreadableAnswer(f"{self._address.name}: {declined}", spend=answer.spend) from declined


@dataclass(frozen=True)
class _Answer:
    """What came back, what had been asked in the end, and what everything has cost up to here."""

    response: ModelResponse
    messages: Messages
    spend: Spend


def _tokens(response: ModelResponse, messages: Messages) -> Spend:
    """What the provider counted; servers that do not count are estimated, so that a budget holds with them too."""
    usage = response.usage
    if not usage.unmeasured_requests:
        return Spend(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
    said = "".join(part.args_as_json_str() for part in response.tool_calls) + (response.text or "")
    return Spend(input_tokens=estimate(messages.instructions + messages.case), output_tokens=estimate(said))


def _model(address: Address, http: httpx2.AsyncClient) -> Model:
    try:
        return model_at(address, http)
    except UserError as error:
        raise ProviderRefused(f"{address.name}: {error.message}", reason="auth") from error


def _settings(address: Address) -> ModelSettings:
    settings = ModelSettings(timeout=address.timeout, request_timeout=address.timeout, cache={"messages": False})
    if address.protocol == "anthropic":
        settings["max_tokens"] = ANTHROPIC_MOST_TOKENS
    return settings


def _content(messages: Messages) -> str | Sequence[UserContent]:
    case = sendable(messages.case)
    return [case, *map(_picture, messages.images)] if messages.images else case


def sendable(text: str) -> str:
    """Lone surrogates cannot be sent and become question marks."""
    return text.encode("utf-8", "replace").decode()


def _picture(image: str) -> UserContent:
    return BinaryContent.from_data_uri(image) if image.startswith("data:") else ImageUrl(image)


def _complaint(error: ValidationError) -> str:
    """What was wrong, without a word of the answer itself: that might carry text out of its fence."""
    return f"\n\nYour last answer could not be used: {_faults(error)}. Answer again, in the form asked for."


def _faults(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False, include_input=False)[:FAULTS_SHOWN]
    return "; ".join(f"{_place(fault)}: {fault['msg']}" for fault in faults)


def _place(fault: ErrorDetails) -> str:
    """Where it is, in names of ours: a field that should not be there has a name of the model's."""
    known = fault["loc"][:-1] if fault["type"] == "extra_forbidden" else fault["loc"]
    return ".".join(map(str, known)) or "answer"
