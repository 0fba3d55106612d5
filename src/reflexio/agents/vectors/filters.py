"""Filters on metadata: read once into a condition, which every store answers with the same meaning.

Values are compared as JSON: 1 is not "1" and not true, 1 is 1.0, and null is what a missing key has. Order holds
among numbers and among strings (by code point), never between the two.

>>> condition({"user_id": ["ada", "*"], "score": {"$lt": 0.5}})
Both(conditions=(OneOf(key='user_id', values=('ada', '*')), Ordered(key='score', sign='<', value=0.5)))
"""

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from reflexio.errors import InvalidRequest

Sign = Literal["<", "<=", ">", ">="]
SIGNS: dict[str, Sign] = {"$lt": "<", "$lte": "<=", "$gt": ">", "$gte": ">="}
KNOWN = "$eq $ne $in $nin $lt $lte $gt $gte $exists $not, and $and $or $not around whole filters"


@dataclass(frozen=True)
class OneOf:
    """The value is one of these; with none it holds nowhere."""

    key: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Ordered:
    """The value is of the same type as this one and stands in this order to it."""

    key: str
    sign: Sign
    value: float | str


@dataclass(frozen=True)
class Present:
    """The key is there, be its value null."""

    key: str


@dataclass(frozen=True)
class Neither:
    """The condition does not hold."""

    condition: "Condition"


@dataclass(frozen=True)
class Both:
    """All of these hold; with none it holds everywhere."""

    conditions: "tuple[Condition, ...]"


@dataclass(frozen=True)
class Either:
    """One of these holds; with none it holds nowhere."""

    conditions: "tuple[Condition, ...]"


Condition: TypeAlias = OneOf | Ordered | Present | Neither | Both | Either
EVERYWHERE = Both(())


def condition(given: Mapping[str, Any] | None) -> Condition:
    """What a filter asks for. A bare value means `$eq`, a list `$in`; several keys hold together."""
    if given is None:
        return EVERYWHERE
    if not isinstance(given, Mapping):
        raise InvalidRequest(f"A filter is a mapping of keys to conditions, not {given!r}.")
    return _all([_part(key, asked) for key, asked in given.items()])


def _part(key: str, asked: Any) -> Condition:
    match key:
        case "$and":
            return Both(tuple(condition(each) for each in _listed(key, asked)))
        case "$or":
            return Either(tuple(condition(each) for each in _listed(key, asked)))
        case "$not":
            return Neither(condition(asked))
        case str() if not key.startswith("$"):
            return _about(key, asked)
    raise InvalidRequest(f"{key!r} is no operator of a filter; there are {KNOWN}.")


def _about(key: str, asked: Any) -> Condition:
    if isinstance(asked, Mapping):
        return _all([_operator(key, operator, value) for operator, value in asked.items()])
    return OneOf(key, tuple(map(as_json, asked)) if isinstance(asked, list | tuple | set) else (as_json(asked),))


def _operator(key: str, operator: str, value: Any) -> Condition:
    match operator:
        case "$eq":
            return OneOf(key, (as_json(value),))
        case "$ne":
            return Neither(OneOf(key, (as_json(value),)))
        case "$in":
            return OneOf(key, tuple(map(as_json, _listed(operator, value))))
        case "$nin":
            return Neither(OneOf(key, tuple(map(as_json, _listed(operator, value)))))
        case "$exists":
            return Present(key) if value else Neither(Present(key))
        case "$not":
            return Neither(_about(key, value))
        case "$lt" | "$lte" | "$gt" | "$gte":
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                raise InvalidRequest(f"{operator} of {key!r} compares numbers or strings, not {value!r}.")
            return Ordered(key, SIGNS[operator], as_json(value))
    raise InvalidRequest(f"{operator!r} of {key!r} is no operator of a filter; there are {KNOWN}.")


def _all(conditions: list[Condition]) -> Condition:
    return conditions[0] if len(conditions) == 1 else Both(tuple(conditions))


def _listed(operator: str, value: Any) -> list[Any]:
    if not isinstance(value, list | tuple | set):
        raise InvalidRequest(f"{operator} takes a list, not {value!r}.")
    return list(value)


def as_json(value: Any) -> Any:
    """The value as JSON keeps it, and a copy of its own."""
    if value is None or type(value) in (str, int, bool):
        return value
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"Metadata and filters hold JSON: {error}.") from error


def identity(value: Any) -> Hashable:
    """What is equal exactly when two JSON values are."""
    match value:
        case bool():
            return ("bool", value)
        case list():
            return ("list", *map(identity, value))
        case dict():
            return ("dict", frozenset((key, identity(each)) for key, each in value.items()))
        case _:
            return value  # type: ignore[no-any-return]


def stands(value: Any, asked: Ordered) -> bool:
    """Whether a JSON value stands in the order that is asked for."""
    if isinstance(asked.value, str) != isinstance(value, str) or not isinstance(value, str | int | float):
        return False
    if isinstance(value, bool):
        return False
    match asked.sign:
        case "<":
            return value < asked.value  # type: ignore[operator]
        case "<=":
            return value <= asked.value  # type: ignore[operator]
        case ">":
            return value > asked.value  # type: ignore[operator]
        case ">=":
            return value >= asked.value  # type: ignore[operator]


def sql(asked: Condition) -> tuple[str, list[Any]]:
    """The condition as SQL about a jsonb column `metadata`, true or false and never null, with its parameters."""
    match asked:
        case OneOf(key, values):
            return _joined(" OR ", [_equals(key, each) for each in values], "FALSE")
        case Ordered(key, sign, str() as value):
            # Python's order of strings is that of code points; only the C collation has it too.
            typed = f"""(metadata ->> %s::text) COLLATE "C" {sign} %s::text"""
            return f"coalesce(jsonb_typeof(metadata -> %s::text) = 'string' AND {typed}, FALSE)", [key, key, value]
        case Ordered(key, sign, value):
            typed = f"(metadata -> %s::text) {sign} %s::jsonb"
            return (
                f"coalesce(jsonb_typeof(metadata -> %s::text) = 'number' AND {typed}, FALSE)",
                [key, key, json.dumps(value)],
            )
        case Present(key):
            return "(metadata ? %s::text)", [key]
        case Neither(inner):
            text, parameters = sql(inner)
            return f"(NOT {text})", parameters
        case Both(parts):
            return _joined(" AND ", [sql(each) for each in parts], "TRUE")
        case Either(parts):
            return _joined(" OR ", [sql(each) for each in parts], "FALSE")


def _equals(key: str, value: Any) -> tuple[str, list[Any]]:
    if value is None:
        return "coalesce(metadata -> %s::text = 'null', TRUE)", [key]
    if isinstance(value, list | dict):
        return "coalesce(metadata -> %s::text = %s::jsonb, FALSE)", [key, json.dumps(value)]
    # Of a scalar, to contain is to equal, and containment has an index.
    return "(metadata @> %s::jsonb)", [json.dumps({key: value})]


def _joined(word: str, parts: list[tuple[str, list[Any]]], empty: str) -> tuple[str, list[Any]]:
    text = f"({word.join(text for text, _ in parts)})" if parts else empty
    return text, [each for _, parameters in parts for each in parameters]
