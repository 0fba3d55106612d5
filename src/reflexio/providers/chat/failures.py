"""Turns pydantic-ai's errors into ours, which say who must act when a call fails."""

import json
import logging
import re

import httpx2
from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRequestRejectedError,
    UserError,
)

from reflexio.errors import (
    ContextTooLong,
    Declined,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    UnreadableAnswer,
)
from reflexio.models.extraction import Spend
from reflexio.providers.billing import is_out_of_credit
from reflexio.providers.chat.resolve import ModelAddress
from reflexio.providers.outgoing import AddressRefused

log = logging.getLogger("reflexio")

MAX_CHARACTERS = 300
MIN_KEY_CHARACTERS = 8  # shorter ones are placeholders, and parts of words
# Gemini reports a limit per minute and an empty account alike; a limit per minute is far more common.
GOOGLE_LIMIT = "RESOURCE_EXHAUSTED"


OVERLOADED = (408, 409, 425, 429, 503, 529)
"""Statuses of a provider that is busy or away, whatever it is asked."""

DECLINED = re.compile(
    r"content_filter|content management policy|ResponsibleAIPolicy|content policy|usage polic|safety (?:filter|system)"
    r"|data_inspection_failed|inappropriate content",
    re.IGNORECASE,
)
TOO_LONG = re.compile(
    r"exceed_context_size|context_length_exceeded|(?:maximum|max|available|allowed) context (?:length|size|window)"
    r"|context (?:length|size|window) (?:is |was |has been )?exceed|exceeds? (?:the )?(?:model'?s )?(?:max\w* )?context"
    r"|(?:prompt|input|request|messages?) (?:is|are) too (?:long|large)|too many (?:input )?tokens"
    r"|reduce the length|maximum (?:prompt|input) (?:length|tokens)|range of input length"
    r"|context length of only|context the overflows|`inputs` (?:tokens|must)"
    r"|context (?:window|size|length) is too small",
    re.IGNORECASE,
)
ABOUT_STRUCTURE = re.compile(
    r"\btools?\b|tool_|function|schema|response_format|json|grammar|jinja|structured|guided", re.IGNORECASE
)
ABOUT_STREAM = re.compile(
    r"only supports? stream|streaming (?:is )?(?:only|required)|\bstream\b.{0,40}\btrue\b", re.IGNORECASE
)
ABOUT_LIMIT = re.compile(r"max_(?:completion_|output_|new_)?tokens|maxOutputTokens", re.IGNORECASE)
ABOUT_STREAM_OPTIONS = re.compile(r"stream_options|include_usage", re.IGNORECASE)
ABOUT_SYSTEM = re.compile(
    r"(?:system|developer) (?:role|prompt|message|instruction)s?.{0,40}(?:not |un)(?:support|allow|enabl|permit|accept)"
    r"|(?:not support|unsupported|invalid|unknown|unexpected).{0,30}(?:system|developer)\b"
    r"|'(?:system|developer)' is not|roles must alternate",
    re.IGNORECASE,
)
ABOUT_EFFORT = re.compile(r"reasoning[_.]effort", re.IGNORECASE)

# What a call may raise. Some clients let errors of the connection through; an image that pydantic-ai has to fetch
# for the provider may be missing, or may not be an image; an answer in an unknown form makes clients stumble.
FAILURES = (
    AgentRunError,
    UserError,
    UnreadableAnswer,
    httpx2.HTTPError,
    ValueError,
    TimeoutError,
    LookupError,
    TypeError,
    AttributeError,
)


def failure(error: Exception, address: ModelAddress, spend: Spend) -> ProviderError:
    """The error to raise instead, without the key. The words of a server that an organisation chose are only logged."""
    if refused := _refused_address(error):
        return ProviderRefused(f"{address.name}: {refused}", reason="auth", spend=spend)
    words = " ".join(words_of(error).split())
    if len(address.api_key) >= MIN_KEY_CHARACTERS:
        words = words.replace(address.api_key, "…")
    if address.addresses is not None:
        log.warning("%s: %s", address.name, words[:MAX_CHARACTERS])
        words = _without_words(error)
    return _classified(error, f"{address.name}: {words[:MAX_CHARACTERS]}", address, spend)


def _classified(error: Exception, detail: str, address: ModelAddress, spend: Spend) -> ProviderError:
    """Who must act, by the class of the error."""
    if _is_answer_too_long(error):
        return UnreadableAnswer(detail, spend=spend)
    match error:
        case ModelAPIError() if _is_billing(error):
            return ProviderRefused(detail, reason="billing", spend=spend)
        case ModelAuthenticationError() | ModelNotFoundError() | UserError():
            return ProviderRefused(detail, reason="auth", spend=spend)
        case ModelAPIError() if is_too_long(error):
            return ContextTooLong(detail, spend=spend)
        case ModelAPIError() if is_declined(error):
            return Declined(detail, spend=spend)
        case ModelAPIError() if is_rejected(error):
            return UnreadableAnswer(detail, spend=spend)
        case ModelAPIError():
            wait = error.retry_after
            return ProviderUnavailable(detail, retry_after=wait, is_overloaded=_is_overloaded(error), spend=spend)
        case httpx2.HTTPError() | TimeoutError():
            return ProviderUnavailable(detail, is_overloaded=isinstance(error, httpx2.ConnectError), spend=spend)
        case LookupError() | TypeError() | AttributeError():
            return ProviderUnavailable(f"{address.name}: the server's answer has an unknown form", spend=spend)
        case _:
            return UnreadableAnswer(detail, spend=spend)


def is_rejected(error: Exception) -> bool:
    """Whether the provider rejects this request, and would reject it again."""
    if isinstance(error, ModelHTTPError):
        return error.status_code < 500 and error.status_code not in OVERLOADED
    return isinstance(error, ModelRequestRejectedError)


def is_too_long(error: Exception) -> bool:
    """Whether the request has more text than the model can read; some local servers report it as an error of theirs."""
    if not isinstance(error, ModelHTTPError):
        return isinstance(error, ModelContextWindowExceededError)
    is_said = error.status_code in (400, 422, 500) and TOO_LONG.search(_body(error)) is not None
    return error.status_code == 413 or isinstance(error, ModelContextWindowExceededError) or is_said


def is_declined(error: Exception) -> bool:
    return isinstance(error, ModelHTTPError) and error.status_code < 500 and DECLINED.search(_body(error)) is not None


def is_about_account(error: Exception) -> bool:
    """Whether key, bill or model are the problem, which no other form of the question changes."""
    is_refused = isinstance(error, ModelAuthenticationError | ModelNotFoundError)
    return isinstance(error, ModelAPIError) and (is_refused or _is_billing(error))


def is_about_structure(error: Exception) -> bool:
    """Whether the words of a rejection name tools or schemas."""
    return isinstance(error, UserError) or is_about(ABOUT_STRUCTURE, error)


def is_about(pattern: re.Pattern[str], error: Exception) -> bool:
    """Whether the provider rejects the request with words such as these; some do so as an error of their own."""
    is_possible = is_rejected(error) or (isinstance(error, ModelHTTPError) and error.status_code in (500, 501))
    return is_possible and pattern.search(words_of(error)) is not None


def _is_overloaded(error: ModelAPIError) -> bool:
    match error:
        case ModelHTTPError(status_code=status):
            return status in OVERLOADED
        case ModelConnectionError():
            return error.phase in ("connect", "pool")
        case _:
            return False


def is_about_images(error: Exception) -> bool:
    """Whether the request may succeed without its images: key, bill, model and length are not the problem."""
    match error:
        case ModelAuthenticationError() | ModelNotFoundError() | ModelContextWindowExceededError():
            return False
        case ModelAPIError():
            return isinstance(error, ModelRequestRejectedError) and not _is_billing(error)
        case _:
            return isinstance(error, UserError | httpx2.HTTPError | ValueError)


def _is_billing(error: ModelAPIError) -> bool:
    if error.provider_error_code == GOOGLE_LIMIT:
        return False
    return isinstance(error, ModelQuotaExceededError) or is_out_of_credit(_body(error))


def _is_answer_too_long(error: BaseException | None) -> bool:
    """The limit on the length of an answer raises inside the provider's client, which wraps the error."""
    while error is not None:
        if isinstance(error, UnreadableAnswer):
            return True
        error = error.__cause__
    return False


def _refused_address(error: BaseException | None) -> AddressRefused | None:
    while error is not None and not isinstance(error, AddressRefused):
        error = error.__cause__ or error.__context__
    return error


def _without_words(error: Exception) -> str:
    """What happened, without a byte of what an internal server may have answered."""
    match error:
        case ModelHTTPError():
            return f"HTTP {error.status_code}"
        case _ if _is_answer_too_long(error):
            return "the answer is too long"
        case ModelAPIError():
            return "the server cannot be reached, or its answer cannot be read"
        case TimeoutError():
            return "no answer in time"
        case _:
            return type(error).__name__


def _body(error: ModelAPIError) -> str:
    return error.body if isinstance(error.body, str) else json.dumps(error.body, default=str)


def words_of(error: Exception) -> str:
    """What went wrong, in the provider's words."""
    match error:
        # OpenAI's message stands at the top of the body, Anthropic's and Google's one level deeper.
        case ModelHTTPError(
            body={"message": str(message)} | {"error": {"message": str(message)}} | {"error": str(message)}
        ):
            return f"HTTP {error.status_code} {message}"
        case ModelHTTPError():
            return f"HTTP {error.status_code} {'' if error.body is None else _body(error)}"
        case AgentRunError():
            return error.message
        case UnreadableAnswer():
            return error.detail
        case TimeoutError():
            return str(error) or "no answer in time"
        case _:
            return f"{type(error).__name__} {error}"
