"""HTTP responses become values or errors here, and errors say whether a call may be repeated."""

import email.utils
import json
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ValidationError

from reflexio import errors
from reflexio.models.operation import OperationStatus, OperationStatusInfo

A = TypeVar("A", bound=BaseModel)

NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
LONGEST_WAIT = 30.0


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A response that was read to its end. Header names are found in any case."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")

    @property
    def detail(self) -> str:
        try:
            detail = json.loads(self.content)["detail"]
        except (ValueError, KeyError, TypeError):
            return self.text[:500]
        return detail if isinstance(detail, str) else str(detail)


def read(reply: HttpReply, response_type: type[A], url: str) -> A:
    """The response as a value. Raises the error that the server answered with, or ServerFailed for foreign answers."""
    if not 200 <= reply.status < 300:
        raise failure(reply, url)
    try:
        response = response_type.model_validate_json(reply.content, extra="ignore")
    except ValidationError as error:
        raise _foreign(reply, url) from error
    # A Reflexio server always sets `success` where the model has it, and else at least one known field.
    known = response.model_fields_set
    if "success" not in known if "success" in response_type.model_fields else not known:
        raise _foreign(reply, url)
    return response


def _foreign(reply: HttpReply, url: str) -> errors.ServerFailed:
    detail = f"{url} did not answer as a Reflexio server does: {reply.text[:200]!r}"
    return errors.ServerFailed(detail, status=reply.status)


def failure(reply: HttpReply, url: str) -> errors.ReflexioError:
    """The error that a response without success stands for."""
    match reply.status:
        case status if status < 400:
            location = reply.headers.get("location", "")
            return errors.ServerFailed(f"It points elsewhere, to {location!r}; call that address.", status=status)
        case 401:
            return errors.NotAuthorised.with_message(reply.detail)
        case 403:
            return errors.NotPermitted.with_message(reply.detail, scope="")
        case 404:
            # Another server's page says less than the path.
            is_ours = reply.headers.get("content-type", "").startswith("application/problem+json")
            return errors.NotFound.with_message(reply.detail if is_ours else "", what="route", id=urlsplit(url).path)
        case 409:
            return errors.Conflict(reply.detail)
        case 413:
            return errors.TooLarge(reply.detail)
        case 400 | 415 | 422:
            return errors.InvalidRequest(reply.detail)
        case 429:
            return errors.RateLimited.with_message(reply.detail, retry_after=retry_after(reply) or 1.0)
        case status:
            return errors.ServerFailed(reply.detail, status=status)


def retry_after(reply: HttpReply) -> float | None:
    """Seconds that the server asks to wait; the header holds seconds or a date."""
    header = reply.headers.get("retry-after", "")
    if header.replace(".", "", 1).isdigit():
        return float(header)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    except ValueError:
        return None


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
    """Seconds to wait before the next attempt."""
    if isinstance(error, errors.RateLimited):
        return min(error.retry_after, LONGEST_WAIT)
    return 0.1 * 2.0**attempt * random.uniform(0.5, 1.5)


def empty(response_type: type[A], error: Exception) -> A:
    """The response when memory cannot be reached: no rows, and the reason."""
    reason = {name: str(error) for name in ("msg", "message") if name in response_type.model_fields}
    return response_type.model_validate({"success": False, **reason})


def rerun_result(response_type: type[BaseModel], end: OperationStatusInfo) -> dict[str, object]:
    """What the response of a rerun says once its operation has ended."""
    count = end.stats.get("total_generated", 0)
    failed = f"; {end.failed_users} user(s) failed" if end.failed_users else ""
    success, msg = True, f"Generated {count}{failed}"
    if end.status is not OperationStatus.COMPLETED:
        success, msg = False, end.error_message or f"The operation is {end.status.value}"
    count_field = "profiles_generated" if "profiles_generated" in response_type.model_fields else "playbooks_generated"
    return {"success": success, "msg": msg, count_field: count}
