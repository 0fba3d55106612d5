"""What a publish leaves out when the client fails open: an optional field that is not valid must lose no turn."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json

from reflexio.models.interaction import InteractionData, PublishRequest

Place = tuple[int | str, ...]

TURNS = "interaction_data_list"
NEEDED = {"user_id", TURNS, "kind", "learning_id", "real_id", "tool_name"}
"""Fields that are not left out alone: what they are part of is."""
CAUTIOUS: dict[str, object] = {"role": "system", "evaluation_only": True}
"""Values in place of what was meant and cannot be read: nothing is learned that was not meant to be."""
TOGETHER = {"user_action_description": "user_action"}
LEVELS = 5
"""A publish, its turns, one of them, a list in it, an entry of that."""
NUL = re.compile(rb"(?<!\\)(\\\\)*\\u0000")
MOST_ROUNDS = 5
MOST_WARNINGS = 20


def without_faults(fields: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The fields of a publish without optional ones that are not valid, and a warning for each of those.

    What cannot be repaired, such as a missing user, stays: the request is refused then.
    """
    publish = {name: value for name, value in fields.items() if value is not None}
    warnings: list[str] = []
    for _ in range(MOST_ROUNDS):
        faults = _faults(publish)
        if not faults:
            break
        publish = _copy(publish)
        left_out = [f"{_name(place)} was {done}: {why}" for place, why in faults if (done := _repair(publish, place))]
        _drop_gone(publish)
        warnings += left_out
        if not left_out:
            break
    more = len(warnings) - MOST_WARNINGS
    return publish, warnings[:MOST_WARNINGS] + ([f"{more} more were left out"] if more > 0 else [])


def _faults(publish: dict[str, Any]) -> list[tuple[Place, str]]:
    try:
        request = PublishRequest.model_validate(publish)
    except ValidationError as invalid:
        faults = {_field_of(error["loc"]): error["msg"].removeprefix("Value error, ") for error in invalid.errors()}
        return list(faults.items())
    if _is_sendable(request):
        return []
    return [(place, "it cannot be sent as JSON") for place in _unsendable(publish)]


def _field_of(place: Place) -> Place:
    """The place of what is left out: a field of the publish or a turn, an entry of a list, or a field of that entry."""
    return place[:4] if len(place) > 4 and place[4] in NEEDED else place[:5]


def _is_sendable(value: object) -> bool:
    """Whether it can be written as JSON, and the server accepts it: no text may hold a NUL character."""
    try:
        return not NUL.search(to_json(value))
    except (PydanticSerializationError, ValueError):
        return False


def _unsendable(publish: Mapping[str, Any], place: Place = ()) -> Iterator[Place]:
    for name, value in publish.items():
        here = (*place, name)
        if _is_sendable(value):
            continue
        if not isinstance(value, list | tuple):
            yield here
            continue
        for number, entry in enumerate(value):
            parts = _as_dict(entry) if isinstance(entry, Mapping | InteractionData) else None
            if parts and len(here) < 4:
                yield from map(_field_of, _unsendable(parts, (*here, number)))
            elif not _is_sendable(entry):
                yield (*here, number)


def _as_dict(entry: Mapping[str, Any] | InteractionData) -> dict[str, Any]:
    return dict(entry) if isinstance(entry, Mapping) else entry.model_dump(exclude_unset=True)


def _copy(value: Any, levels: int = LEVELS) -> Any:
    """A copy of what the caller passed in, down to the fields of the entries of a turn's lists."""
    if isinstance(value, InteractionData):
        value = _as_dict(value)
    if not levels:
        return value
    if isinstance(value, Mapping):
        return {name: _copy(part, levels - 1) for name, part in value.items()}
    return [_copy(part, levels - 1) for part in value] if isinstance(value, list | tuple) else value


_GONE = object()


def _repair(publish: dict[str, Any], place: Place) -> str:
    """Leaves a field or an entry of a list out, or gives it a cautious value; says which, or nothing if it cannot."""
    if not place or place[-1] in NEEDED:
        return ""
    *path, last = place
    holder: Any = publish
    for step in path:
        holder = holder[step]
    if isinstance(holder, list) and isinstance(last, int):
        holder[last] = _GONE
        return "left out"
    if not isinstance(holder, dict):
        return _repair(publish, place[:4]) if len(place) > 4 else ""
    named = [name for name in (last, TOGETHER.get(str(last))) if name in holder]
    if not named:
        return ""
    if last in CAUTIOUS and holder[last] != CAUTIOUS[last]:
        holder[last] = CAUTIOUS[last]
        return f"taken for {CAUTIOUS[last]!r}"
    for name in named:
        del holder[name]
    return "left out"


def _drop_gone(value: Any, levels: int = LEVELS) -> None:
    if isinstance(value, list):
        value[:] = [part for part in value if part is not _GONE]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts if levels else ():
        _drop_gone(part, levels - 1)


def _name(place: Place) -> str:
    return ".".join(map(str, place)).replace(TURNS, "interactions", 1)
