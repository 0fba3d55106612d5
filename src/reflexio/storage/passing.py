"""Which learnings pass a filter.

A condition is built once for all filters that ask for the same things; a question brings only its values.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Text, and_, bindparam, func, or_, select, type_coerce

from reflexio.models.status import PlaybookStatus, Status
from reflexio.ports.storage import LearningFilter
from reflexio.storage.hot import Look
from reflexio.storage.paging import owned
from reflexio.storage.schema import learnings

column = learnings.c
IN_REVIEW = and_(column.status == Status.CURRENT.value, column.review == PlaybookStatus.PENDING.value)
EQUAL = ("user_id", "agent_version", "name", "source", "request_id")
OTHERS = "others_"
"""What the conditions of `of_users_with` begin with."""


def asked(where: LearningFilter, org_id: str, *, by_id: bool = False) -> dict[str, Any]:
    """What it asks for, by the names of the conditions. `by_id` when ids stand beside it."""
    by_id = by_id or where.ids is not None
    wanted = {
        "owner" if by_id else "org": org_id,
        "kind": where.kind.value,
        **{name: getattr(where, name) for name in EQUAL},
        "start": where.within.start,
        "end": where.within.end,
        "ids": _listed(where.ids),
        "keys": _listed(where.keys),
        "clusters": _listed(where.clusters),
        "or_in_review" if where.or_in_review else "statuses": _values(where.statuses),
        "reviews": _values(where.reviews),
        "contains": _holding(where.contains),
        "time_to_live": where.time_to_live and _holding(f'"profile_time_to_live":"{where.time_to_live}"'),
        "alive_at": where.alive_at,
        **{f"tag{number}": _holding(f"|{tag}|") for number, tag in enumerate(where.tags)},
    }
    if where.of_users_with is not None:
        wanted |= {OTHERS + name: value for name, value in asked(where.of_users_with, org_id).items()}
    return {name: value for name, value in wanted.items() if value is not None}


def condition(wanted: Mapping[str, Any]) -> ColumnElement[bool]:
    """All of it together."""
    theirs = {name.removeprefix(OTHERS): value for name, value in wanted.items() if name.startswith(OTHERS)}
    own = {name: value for name, value in wanted.items() if not name.startswith(OTHERS)}
    parts = [CONDITIONS[name.rstrip("0123456789")](value) for name, value in own.items()]
    if theirs:
        # The inner table hides the outer one of the same name: without this, the two would be taken for one.
        parts.append(column.user_id.in_(select(column.user_id).where(condition(theirs)).correlate(None)))
    return and_(*parts)


@lru_cache(maxsize=256)
def count_of(names: tuple[str, ...]) -> Look:
    """How many rows pass."""
    return Look(select(func.count()).select_from(learnings).where(_without_values(names)))


@lru_cache(maxsize=256)
def first_of(names: tuple[str, ...]) -> Look:
    """Rows that pass, at most `most`."""
    return Look(select(column.id).where(_without_values(names)).limit(bindparam("most")))


@lru_cache(maxsize=256)
def among(names: tuple[str, ...]) -> Look:
    """Those of the ids `among` that pass."""
    return Look(select(column.id).where(_without_values(names), column.id.in_(bindparam("among", expanding=True))))


def _without_values(names: tuple[str, ...]) -> ColumnElement[bool]:
    return condition({name: bindparam(name, expanding=name.rpartition(OTHERS)[2] in LISTS) for name in names})


def _like(held: Any, pattern: Any) -> ColumnElement[bool]:
    found: ColumnElement[bool] = held.ilike(pattern, escape="\\")
    return found


CONDITIONS: dict[str, Callable[[Any], ColumnElement[bool]]] = {
    "org": lambda value: column.org_id == value,
    "owner": lambda value: owned(column.org_id, value),
    "kind": lambda value: column.kind == value,
    "user_id": lambda value: column.user_id == value,
    "agent_version": lambda value: column.agent_version == value,
    "name": lambda value: column.name == value,
    "source": lambda value: column.source == value,
    "request_id": lambda value: column.request_id == value,
    "start": lambda value: column.created_at >= value,
    "end": lambda value: column.created_at <= value,
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
LISTS = ("ids", "keys", "clusters", "statuses", "or_in_review", "reviews")


def _holding(text: str | None) -> str | None:
    if text is None:
        return None
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _listed(values: Iterable[Any] | None) -> list[Any] | None:
    return None if values is None else list(values)


def _values(entries: Iterable[Enum] | None) -> list[Any] | None:
    return None if entries is None else [each.value for each in entries]
