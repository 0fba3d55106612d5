"""HTTP answers become values or errors here."""

import email.utils
import json
import random
import time
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ValidationError

from reflexio import errors
from reflexio.client.http1 import Reply

A = TypeVar("A", bound=BaseModel)
B = TypeVar("B", bound=BaseModel)

NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
LONGEST_WAIT = 30.0


def _detail(reply: Reply) -> str:
    try:
        detail = json.loads(reply.content)["detail"]
    except (ValueError, KeyError, TypeError):
        return reply.text[:500]
    return detail if isinstance(detail, str) else str(detail)


def _explained(reply: Reply) -> str:
    """What a Reflexio server says is missing; of any other answer the path says more than its page."""
    ours = reply.headers.get("content-type", "").startswith("application/problem+json")
    return _detail(reply) if ours else ""


def failure(reply: Reply, url: str) -> errors.ReflexioError:
    """The error that a reply without success stands for."""
    detail = _detail(reply)
    match reply.status:
        case status if status < 400:
            there = reply.headers.get("location", "")
            return errors.ServerFailed(f"It points elsewhere, to {there!r}; call that address.", status=status)
        case 401 | 403:
            return errors.NotAuthorised.told(detail)
        case 404:
            return errors.NotFound.told(_explained(reply), what="route", id=urlsplit(url).path)
        case 409:
            return errors.Conflict(detail)
        case 413:
            return errors.TooLarge(detail)
        case 400 | 415 | 422:
            return errors.InvalidRequest(detail)
        case 429:
            return errors.RateLimited.told(detail, retry_after=retry_after(reply) or 1.0)
        case status:
            return errors.ServerFailed(detail, status=status)


def retry_after(reply: Reply) -> float | None:
    given = reply.headers.get("retry-after", "")
    if given.replace(".", "", 1).isdigit():
        return float(given)
    try:
        moment = email.utils.parsedate_to_datetime(given)
    except ValueError:
        return None
    return max(0.0, moment.timestamp() - time.time())


def may_repeat(error: Exception, *, repeatable: bool) -> bool:
    """Whether trying again is safe: the call never arrived, was turned away, or may be made twice."""
    match error:
        case errors.RateLimited():
            return True
        case errors.ServerFailed():
            return repeatable and error.values["status"] in (502, 503, 504)
        case errors.ServerUnreachable():
            return repeatable
        case httpx.TransportError():
            return repeatable or isinstance(error, NEVER_SENT)
        case _:
            return False


def pause(error: Exception, attempt: int) -> float:
    """Seconds to wait before the next try."""
    if isinstance(error, errors.RateLimited):
        return min(error.retry_after, LONGEST_WAIT)
    return 0.1 * 2.0**attempt * random.uniform(0.5, 1.5)


def read(reply: Reply, answer: type[A], url: str) -> A:
    if not reply.is_success:
        raise failure(reply, url)
    try:
        said = answer.model_validate_json(reply.content, extra="ignore")
    except ValidationError as error:
        raise _foreign(reply, url) from error
    if not _is_ours(said):
        raise _foreign(reply, url)
    return said


def _is_ours(said: BaseModel) -> bool:
    """A Reflexio server says whether it succeeded, or else something that the answer has a name for."""
    told = said.model_fields_set
    return "success" in told if "success" in type(said).model_fields else bool(told)


def _foreign(reply: Reply, url: str) -> errors.ServerFailed:
    detail = f"{url} did not answer as a Reflexio server does: {reply.text[:200]!r}"
    return errors.ServerFailed(detail, status=reply.status)


def build(model: type[B], values: dict[str, object]) -> B:
    """A request from what the caller gave; what was left out takes the model's default."""
    try:
        return model.model_validate({name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        found = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
        raise errors.InvalidRequest("; ".join(found)) from error


def asked(model: type[B], request: B | dict[str, Any] | None, values: dict[str, object]) -> B:
    """A question as the caller put it whole, or else from what was named."""
    if request is None:
        return build(model, values)
    return request if isinstance(request, model) else build(model, dict(request))


def empty(answer: type[A], error: Exception) -> A:
    """The answer of a memory that cannot be reached: nothing, and why."""
    said = {name: str(error) for name in ("msg", "message") if name in answer.model_fields}
    return answer.model_validate({"success": False, **said})
