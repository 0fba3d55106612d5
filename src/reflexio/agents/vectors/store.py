# ruff: noqa: A002  `filter` is a name of the protocol
"""The `VectorStore` protocol, and the filters on metadata that every store evaluates with the same meaning.

Values are compared as JSON: 1 is not "1" and not true, 1 is 1.0, and a missing key has the value null. Order holds
among numbers and among strings (by code point), never between the two.

>>> parse_filter({"user_id": ["ada", "*"], "score": {"$lt": 0.5}})
AllOf(conditions=(OneOf(key='user_id', values=('ada', '*')), Ordered(key='score', sign='<', value=0.5)))
"""

import json
import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

from reflexio.errors import InvalidRequest

Filter: TypeAlias = Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A text to embed, and its metadata."""

    content: str
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A chunk that a search found, its score and its id."""

    chunk: Chunk
    score: float
    id: str


@runtime_checkable
class VectorStore(Protocol):
    """Texts that are searched by meaning.

    `filter` is a subset of Mongo's: `$eq $ne $gt $gte $lt $lte $in $nin $exists $and $or $not`; a plain value means
    `$eq`, a list `$in`. `diversity` from 0 to 1 trades relevance for variety.
    """

    async def add(self, chunks: Sequence[Chunk], ids: Sequence[str] | None = None) -> list[str]: ...

    async def delete(self, ids: Sequence[str]) -> None: ...

    async def search(
        self, query: str, *, k: int = 4, filter: Filter = None, diversity: float | None = None
    ) -> list[SearchResult]: ...

    async def search_by_vector(
        self, vector: Sequence[float], *, k: int = 4, filter: Filter = None, diversity: float | None = None
    ) -> list[SearchResult]: ...

    async def count(self) -> int: ...

    async def get_by_ids(self, ids: Sequence[str]) -> list[Chunk]:
        """The chunks that exist, in the order of `ids`."""


# Filters

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
SIGNS = {"$lt": "<", "$lte": "<=", "$gt": ">", "$gte": ">="}
OPERATORS = "$eq $ne $in $nin $lt $lte $gt $gte $exists $not, and $and $or $not around whole filters"


@dataclass(frozen=True)
class OneOf:
    """The value is one of these; without values, it is never true."""

    key: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Ordered:
    """The stored value has the type of `value` and this order to it."""

    key: str
    sign: str
    value: float | str

    def holds_for(self, stored: Any) -> bool:
        if isinstance(self.value, str) != isinstance(stored, str) or not isinstance(stored, str | int | float):
            return False
        return not isinstance(stored, bool) and COMPARISONS[self.sign](stored, self.value)


@dataclass(frozen=True)
class Present:
    """The key exists, even if its value is null."""

    key: str


@dataclass(frozen=True)
class Not:
    condition: "Condition"


@dataclass(frozen=True)
class AllOf:
    """All conditions are true; without conditions, it is always true."""

    conditions: "tuple[Condition, ...]"


@dataclass(frozen=True)
class AnyOf:
    """One of the conditions is true; without conditions, it is never true."""

    conditions: "tuple[Condition, ...]"


Condition: TypeAlias = OneOf | Ordered | Present | Not | AllOf | AnyOf
ALWAYS = AllOf(())


def parse_filter(filter: Filter) -> Condition:
    """The condition of a filter. A bare value means `$eq`, a list `$in`; several keys must all match."""
    if filter is None:
        return ALWAYS
    if not isinstance(filter, Mapping):
        raise InvalidRequest(f"A filter is a mapping of keys to conditions, not {filter!r}.")
    return _all_of([_parse_entry(key, operand) for key, operand in filter.items()])


def _parse_entry(key: str, operand: Any) -> Condition:
    match key:
        case "$and":
            return AllOf(tuple(map(parse_filter, _as_list(key, operand))))
        case "$or":
            return AnyOf(tuple(map(parse_filter, _as_list(key, operand))))
        case "$not":
            return Not(parse_filter(operand))
        case str() if not key.startswith("$"):
            return _parse_value(key, operand)
    raise InvalidRequest(f"{key!r} is not an operator of filters; the operators are {OPERATORS}.")


def _parse_value(key: str, operand: Any) -> Condition:
    if isinstance(operand, Mapping):
        return _all_of([_parse_operator(key, name, operand) for name, operand in operand.items()])
    return OneOf(key, tuple(map(as_json, operand)) if isinstance(operand, list | tuple | set) else (as_json(operand),))


def _parse_operator(key: str, name: str, operand: Any) -> Condition:
    match name:
        case "$eq":
            return OneOf(key, (as_json(operand),))
        case "$in":
            return OneOf(key, tuple(map(as_json, _as_list(name, operand))))
        case "$ne" | "$nin":
            return Not(_parse_operator(key, "$eq" if name == "$ne" else "$in", operand))
        case "$exists":
            return Present(key) if operand else Not(Present(key))
        case "$not":
            return Not(_parse_value(key, operand))
        case "$lt" | "$lte" | "$gt" | "$gte":
            if isinstance(operand, bool) or not isinstance(operand, int | float | str):
                raise InvalidRequest(f"{name} of {key!r} compares numbers or strings, not {operand!r}.")
            return Ordered(key, SIGNS[name], as_json(operand))
    raise InvalidRequest(f"{name!r} of {key!r} is not an operator of filters; the operators are {OPERATORS}.")


def _all_of(conditions: list[Condition]) -> Condition:
    return conditions[0] if len(conditions) == 1 else AllOf(tuple(conditions))


def _as_list(name: str, operand: Any) -> list[Any]:
    if not isinstance(operand, list | tuple | set):
        raise InvalidRequest(f"{name} takes a list, not {operand!r}.")
    return list(operand)


def as_json(value: Any) -> Any:
    """A copy of the value, as JSON stores it."""
    if value is None or type(value) in (str, int, bool):
        return value
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"Metadata and filters hold JSON: {error}.") from error


def identity(value: Any) -> Hashable:
    """A key that is equal exactly when two JSON values are."""
    match value:
        case bool():
            return ("bool", value)
        case list():
            return ("list", *map(identity, value))
        case dict():
            return ("dict", frozenset((key, identity(item)) for key, item in value.items()))
        case _:
            return value  # type: ignore[no-any-return]
