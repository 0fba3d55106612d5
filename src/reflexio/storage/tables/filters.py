"""A LearningFilter as SQL.

A filter becomes a mapping from the names of its conditions to their values. Filters with the same names share one
compiled query, and each search brings only its values.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Text, and_, bindparam, func, or_, select, type_coerce

from reflexio.models.learning import PlaybookStatus, Status
from reflexio.ports.storage import LearningFilter
from reflexio.storage.compiled import CompiledQuery
from reflexio.storage.queries import attributes, owned_by
from reflexio.storage.schema import learnings

column = learnings.c
IN_REVIEW = and_(column.status == Status.CURRENT.value, column.review == PlaybookStatus.PENDING.value)
EQUAL = ("kind", "user_id", "agent_version", "name", "source", "request_id", "scope")
LISTS = ("ids", "keys", "clusters", "statuses", "or_in_review", "reviews")
OTHERS = "others_"
"""The prefix of the conditions of `of_users_with`."""


def filter_values(where: LearningFilter, org_id: str, *, by_id: bool = False) -> dict[str, Any]:
    """The values of a filter by the names of its conditions. `by_id` when the query also names ids."""
    by_id = by_id or where.ids is not None
    values = {
        "owner" if by_id else "org": org_id,
        **attributes(where, EQUAL),
        "kind": where.kind.value,
        "scope": where.scope and where.scope.value,
        "start": where.within.start,
        "end": where.within.end,
        "expires_from": where.expires_within.start,
        "expires_until": where.expires_within.end,
        "ids": _list(where.ids),
        "keys": _list(where.keys),
        "clusters": _list(where.clusters),
        "or_in_review" if where.or_in_review else "statuses": _list(where.statuses),
        "reviews": _list(where.reviews),
        "contains": _pattern(where.contains),
        "time_to_live": where.time_to_live and _pattern(f'"profile_time_to_live":"{where.time_to_live}"'),
        "alive_at": where.alive_at,
        **{f"tag{number}": _pattern(f"|{tag}|") for number, tag in enumerate(where.tags)},
    }
    if where.of_users_with is not None:
        values |= {OTHERS + name: value for name, value in filter_values(where.of_users_with, org_id).items()}
    return {name: value for name, value in values.items() if value is not None}


def filter_condition(values: Mapping[str, Any]) -> ColumnElement[bool]:
    """All conditions together."""
    others = {name.removeprefix(OTHERS): value for name, value in values.items() if name.startswith(OTHERS)}
    own = {name: value for name, value in values.items() if not name.startswith(OTHERS)}
    conditions = [CONDITIONS[name.rstrip("0123456789")](value) for name, value in own.items()]
    if others:
        # The inner table hides the outer one of the same name: without `correlate`, the two would be taken for one.
        conditions.append(column.user_id.in_(select(column.user_id).where(filter_condition(others)).correlate(None)))
    return and_(*conditions)


@lru_cache(maxsize=256)
def count_query(names: tuple[str, ...]) -> CompiledQuery:
    """Counts the rows that pass."""
    return CompiledQuery(select(func.count()).select_from(learnings).where(_placeholders(names)))


@lru_cache(maxsize=256)
def ids_query(names: tuple[str, ...]) -> CompiledQuery:
    """Ids of rows that pass, at most `most`."""
    return CompiledQuery(select(column.id).where(_placeholders(names)).limit(bindparam("most")))


@lru_cache(maxsize=256)
def allowed_rows_query(names: tuple[str, ...]) -> CompiledQuery:
    """Those of the ids `among` that pass."""
    among = column.id.in_(bindparam("among", expanding=True))
    return CompiledQuery(select(column.id).where(_placeholders(names), among))


def _placeholders(names: tuple[str, ...]) -> ColumnElement[bool]:
    return filter_condition({name: bindparam(name, expanding=name.rpartition(OTHERS)[2] in LISTS) for name in names})


def _like(text: Any, pattern: Any) -> ColumnElement[bool]:
    condition: ColumnElement[bool] = text.ilike(pattern, escape="\\")
    return condition


CONDITIONS: dict[str, Callable[[Any], ColumnElement[bool]]] = {
    "org": lambda value: column.org_id == value,
    "owner": lambda value: owned_by(column.org_id, value),
    **{name: column[name].__eq__ for name in EQUAL},
    "start": lambda value: column.created_at >= value,
    "end": lambda value: column.created_at <= value,
    "expires_from": lambda value: column.expires_at >= value,
    "expires_until": lambda value: column.expires_at <= value,
    "alive_at": lambda value: column.expires_at > value,
    "ids": column.id.in_,
    "keys": column.key.in_,
    "clusters": column.cluster.in_,
    "statuses": column.status.in_,
    "or_in_review": lambda values: or_(column.status.in_(values), IN_REVIEW),
    "reviews": column.review.in_,
    "contains": lambda pattern: or_(_like(column.content, pattern), _like(column.trigger, pattern)),
    "time_to_live": lambda pattern: _like(type_coerce(column.details, Text), pattern),
    "tag": lambda pattern: _like(column.tags, pattern),
}


def _pattern(text: str | None) -> str | None:
    """A LIKE pattern for texts that contain `text`."""
    if text is None:
        return None
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _list(values: Iterable[Any] | None) -> list[Any] | None:
    return None if values is None else [value.value if isinstance(value, Enum) else value for value in values]
