"""The base models of requests and responses, and the field types they share.

A model is built when it is first used: most processes use few of them, and the start of a server none.
"""

import math
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

NEVER_EXPIRES = 4_102_444_800
"""2100-01-01, which means "never" on the wire."""
LAST_SECOND = 253_402_300_799
MAX_DEPTH = 32
SMALLEST, LARGEST = -(2**63), 2**64 - 1
"""The range of integers that all our JSON readers and writers accept."""
ISO = "write a time as ISO 8601, such as 2026-03-01T12:00:00Z"


class RequestModel(BaseModel):
    """What a caller sends: frozen; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class ResponseModel(BaseModel):
    """What the server answers: frozen; unknown fields of later versions are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class SuccessResponse(ResponseModel):
    """A response that says whether the request succeeded."""

    success: bool = True


class NoticeResponse(SuccessResponse):
    """A response with a note in `msg`, if there is something to say."""

    msg: str | None = None


class PageResponse(NoticeResponse):
    """One page of a list, and the cursor to the next page. A page ends at 8 MiB, whatever its limit."""

    next_cursor: str | None = None


class MessageResponse(SuccessResponse):
    """A response with a sentence in `message`."""

    message: str = ""


def build(model: type[BaseModel]) -> None:
    """Builds a model and all its subclasses now, so that no caller waits for it."""
    model.model_rebuild()
    for subclass in model.__subclasses__():
        build(subclass)


def is_deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects are nested deeper than that. Without recursion, because the caller chose the depth."""
    inside = [value]
    for _ in range(levels + 1):
        inside = [each for held in inside for each in _held(held)]
    return bool(inside)


def _held(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values() or (None,)
    return value or (None,) if isinstance(value, list | tuple) else ()


def _storable(value: dict[str, Any]) -> dict[str, Any]:
    if is_deeper(value, MAX_DEPTH):
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    if not all(map(_is_storable, _numbers(value))):
        raise ValueError("contains a number that cannot be stored: integers have up to 64 bits, others are finite")
    return value


def _numbers(value: Any) -> Iterator[int | float]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, list | tuple):
            waiting.extend(each)
        elif isinstance(each, int | float):
            yield each


def _is_storable(number: float) -> bool:
    return SMALLEST <= number <= LARGEST if isinstance(number, int) else math.isfinite(number)


def _written(value: Any) -> Any:
    """Times are written as ISO 8601: a bare number could be seconds, milliseconds or days."""
    if isinstance(value, bool | int | float) or (isinstance(value, str) and _is_number(value)):
        raise ValueError(ISO)
    try:
        # Parsed here, because behind a validator of ours strict validation accepts no text as a time.
        return datetime.fromisoformat(value.strip().upper()) if isinstance(value, str) else value
    except ValueError:
        raise ValueError(ISO) from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _seconds(moment: datetime) -> datetime:
    """A moment without a zone is UTC on the wire; the client sends its local times with their zone."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def epoch_now() -> int:
    return int(time.time())


Trimmed = Annotated[str, StringConstraints(strip_whitespace=True)]
NonEmpty = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=255, pattern=r"^[^\x00]*$")]
Source = Annotated[str, StringConstraints(pattern=r"^([a-z0-9][a-z0-9._:-]{0,127})?$")]
Version = Annotated[str, StringConstraints(max_length=1000)]
JsonObject = Annotated[dict[str, Any], AfterValidator(_storable)]
Epoch = Annotated[int, Field(ge=0, le=LAST_SECOND)]
RowId = Annotated[int, Field(gt=0, le=2**63 - 1)]
Moment = Annotated[datetime, BeforeValidator(_written), AfterValidator(_seconds)]


class UserRequest(RequestModel):
    """A request about one user."""

    user_id: Name


class TimeRangeRequest(RequestModel):
    """A request about a time range. Both ends are optional."""

    start_time: Moment | None = None
    end_time: Moment | None = None
