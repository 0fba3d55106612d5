"""Turns pydantic-ai's errors into ours, which say who must act when a call fails."""

import json
import logging

import httpx2
from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRequestRejectedError,
    UserError,
)

from reflexio.errors import ProviderError, ProviderRefused, ProviderUnavailable, UnreadableAnswer
from reflexio.models.extraction import Spend
from reflexio.providers.billing import is_out_of_credit
from reflexio.providers.chat.resolve import ModelAddress
from reflexio.providers.outgoing import AddressRefused

log = logging.getLogger("reflexio")

MAX_CHARACTERS = 300
MIN_KEY_CHARACTERS = 8  # shorter ones are placeholders, and parts of words
# Gemini reports a limit per minute and an empty account alike; a limit per minute is far more common.
GOOGLE_LIMIT = "RESOURCE_EXHAUSTED"


# What a call may raise. Some clients let errors of the connection through; an image that pydantic-ai has to fetch
# for the provider may be missing, or may not be an image. Anthropic's stumbles over a message without content.
FAILURES = (AgentRunError, UserError, UnreadableAnswer, httpx2.HTTPError, ValueError, TypeError)


def failure(error: Exception, address: ModelAddress, spend: Spend) -> ProviderError:
    """The error to raise instead, without the key. The words of a server that an organisation chose are only logged."""
    if refused := _refused_address(error):
        return ProviderRefused(f"{address.name}: {refused}", reason="auth", spend=spend)
    words = " ".join(_describe(error).split())
    if len(address.api_key) >= MIN_KEY_CHARACTERS:
        words = words.replace(address.api_key, "…")
    if address.addresses is not None:
        log.warning("%s: %s", address.name, words[:MAX_CHARACTERS])
        words = _describe_kind(error)
    detail = f"{address.name}: {words[:MAX_CHARACTERS]}"
    if _is_too_long(error):
        return UnreadableAnswer(detail, spend=spend)
    match error:
        case ModelAPIError() if _is_billing(error):
            return ProviderRefused(detail, reason="billing", spend=spend)
        case ModelAuthenticationError() | ModelNotFoundError() | UserError():
            return ProviderRefused(detail, reason="auth", spend=spend)
        case ModelRequestRejectedError():
            return UnreadableAnswer(detail, spend=spend)
        case ModelHTTPError(status_code=status) if status < 500 and status not in (408, 409, 425, 429):
            return UnreadableAnswer(detail, spend=spend)
        case ModelAPIError():
            return ProviderUnavailable(detail, retry_after=error.retry_after, spend=spend)
        case httpx2.HTTPError():
            return ProviderUnavailable(detail, spend=spend)
        case _:
            return UnreadableAnswer(detail, spend=spend)


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


def _is_too_long(error: BaseException | None) -> bool:
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


def _describe_kind(error: Exception) -> str:
    """What happened, without a byte of what an internal server may have answered."""
    match error:
        case ModelHTTPError():
            return f"HTTP {error.status_code}"
        case ModelAPIError():
            return "The server cannot be reached or its answer cannot be read."
        case _ if _is_too_long(error):
            return "The answer is too long."
        case _:
            return type(error).__name__


def _body(error: ModelAPIError) -> str:
    return error.body if isinstance(error.body, str) else json.dumps(error.body, default=str)


def _describe(error: Exception) -> str:
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
        case _:
            return f"{type(error).__name__} {error}"
