"""Interactions: one row for each turn."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, delete, func, insert, select, update

from reflexio.models.interaction import (
    Citation,
    Interaction,
    InteractionData,
    Request,
    RetrievedLearning,
    ToolUsed,
)
from reflexio.models.paging import Listing, Page
from reflexio.models.shape import Sent
from reflexio.ports.storage import Backlog, Matched, QueryVector, TimeRange, TurnFilter, TurnScope, Unlearned
from reflexio.storage.hot import Hot
from reflexio.storage.paging import during, in_parts, listing, owned
from reflexio.storage.schema import interactions, requests
from reflexio.storage.search.scope import Scope
from reflexio.storage.search.shelves import Shelves
from reflexio.storage.vectors import TURN, TURN_WORDS, findable, forget, without_vector

# The image itself is left on disk: lists show where a picture was, learning reads it when it needs it.
FIELDS = [name for name in Interaction.model_fields if name != "interaction_id"]
COLUMNS = [interactions.c.id, *(interactions.c[name] for name in FIELDS)]
NAMES = ["interaction_id", *FIELDS]
LISTS: dict[str, type[Sent]] = {
    "tools_used": ToolUsed,
    "citations": Citation,
    "retrieved_learnings": RetrievedLearning,
}


def _row(org_id: str, request: Request, turn: InteractionData) -> dict[str, Any]:
    lists = {name: [each.model_dump() for each in getattr(turn, name)] or None for name in LISTS}
    return {
        "org_id": org_id,
        "user_id": request.user_id,
        "request_id": request.request_id,
        "created_at": turn.created_at,
        "role": turn.role,
        "content": turn.content,
        "shadow_content": turn.shadow_content,
        "expert_content": turn.expert_content,
        "user_action": turn.user_action.value,
        "user_action_description": turn.user_action_description,
        "interacted_image_url": turn.interacted_image_url,
        "image_encoding": turn.image_encoding,
        "is_learned": request.evaluation_only,
        **lists,
    }


def read_row(row: Any) -> Interaction:
    values = dict(zip(NAMES, row, strict=True))
    for name, kind in LISTS.items():
        if (held := values.pop(name)) is not None:
            values[name] = [kind.model_construct(**each) for each in held]
    # Validated although it was when it came: that takes a third of the time of `model_construct`.
    return Interaction.model_validate(values)


ADD = Hot(lambda _: insert(interactions), [*FIELDS, "org_id", "image_encoding", "is_learned"])


def _same_request() -> ColumnElement[bool]:
    return (requests.c.org_id == interactions.c.org_id) & (requests.c.request_id == interactions.c.request_id)


def _asked(where: TurnFilter) -> list[ColumnElement[bool]]:
    asked = [interactions.c.user_id == where.user_id, *during(interactions.c.created_at, where.within)]
    return asked if where.request_id is None else [*asked, interactions.c.request_id == where.request_id]


class SqlInteractions:
    def __init__(self, connection: Connection, org_id: str, shelves: Shelves) -> None:
        self._connection = connection
        self._org = org_id
        self._shelves = shelves

    def _mine(self, user_id: str | None) -> list[ColumnElement[bool]]:
        mine = [interactions.c.org_id == self._org]
        return mine if user_id is None else [*mine, interactions.c.user_id == user_id]

    @property
    def _of_org(self) -> ColumnElement[bool]:
        return owned(interactions.c.org_id, self._org)

    def add(self, request: Request, turns: Sequence[InteractionData]) -> None:
        ADD.run(self._connection, [_row(self._org, request, turn) for turn in turns])

    def page(self, user_id: str | None, within: TimeRange, page: Page) -> Listing[Interaction]:
        query = select(*COLUMNS).where(*self._mine(user_id), *during(interactions.c.created_at, within))
        return listing(self._connection, query, interactions, page, read_row)

    def of_requests(self, request_ids: Sequence[str]) -> list[Interaction]:
        query = select(*COLUMNS).where(*self._mine(None), interactions.c.request_id.in_(request_ids))
        return [read_row(row) for row in self._connection.execute(query.order_by(interactions.c.id))]

    def many(self, ids: Sequence[int]) -> dict[int, Interaction]:
        query = select(*COLUMNS).where(self._of_org)
        found = (self._connection.execute(query.where(interactions.c.id.in_(some))) for some in in_parts(ids))
        return {row.id: read_row(row) for rows in found for row in rows}

    def unlearned(self, user_id: str, limit: int, *, request_id: str | None = None) -> list[Unlearned]:
        query = select(*COLUMNS).where(*self._mine(user_id), ~interactions.c.is_learned)
        if request_id is not None:
            query = query.where(interactions.c.request_id == request_id)
        rows = self._connection.execute(query.order_by(interactions.c.id).limit(limit))
        return self._with_requests([read_row(row) for row in rows])

    def backlogs(self, user_ids: Sequence[str]) -> dict[str, Backlog]:
        urgent = func.max(case((requests.c.session_finished | requests.c.force_extraction, 1), else_=0))
        query = (
            select(interactions.c.user_id, func.count(), urgent)
            .join_from(interactions, requests, _same_request())
            .where(interactions.c.org_id == self._org, ~interactions.c.is_learned)
            .group_by(interactions.c.user_id)
        )
        found: dict[str, Backlog] = {}
        for some in in_parts(user_ids):
            rows = self._connection.execute(query.where(interactions.c.user_id.in_(some)))
            found |= {user_id: Backlog(turns, bool(urgent)) for user_id, turns, urgent in rows}
        return found

    def _with_requests(self, turns: Sequence[Interaction]) -> list[Unlearned]:
        columns = [requests.c[name] for name in Request.model_fields]
        known: dict[str, Request] = {}
        for some in in_parts(sorted({turn.request_id for turn in turns})):
            mine = requests.c.org_id == self._org, requests.c.request_id.in_(some)
            for row in self._connection.execute(select(*columns).where(*mine)):
                known[row.request_id] = Request.model_construct(**row._mapping)
        return [Unlearned(turn, known[turn.request_id]) for turn in turns if turn.request_id in known]

    def _in_scope(self, where: TurnScope, user_id: str | None) -> list[ColumnElement[bool]]:
        asked = [*self._mine(user_id), *during(interactions.c.created_at, where.within), ~requests.c.evaluation_only]
        asked.append(_same_request())
        named = {requests.c.agent_version: where.agent_version, requests.c.source: where.source}
        return [*asked, *(column == value for column, value in named.items() if value is not None)]

    def users(self, where: TurnScope) -> list[str]:
        query = select(interactions.c.user_id).distinct().where(*self._in_scope(where, where.user_id))
        return list(self._connection.execute(query.order_by(interactions.c.user_id)).scalars())

    def within(self, where: TurnScope, user_id: str, *, last: int | None = None) -> list[Unlearned]:
        query = select(*COLUMNS).where(*self._in_scope(where, user_id)).order_by(interactions.c.id.desc())
        rows = self._connection.execute(query.limit(last)).all()
        return self._with_requests([read_row(row) for row in reversed(rows)])

    def fresh(self, ids: Sequence[int]) -> set[int]:
        query = select(interactions.c.id).where(self._of_org, ~interactions.c.is_learned)
        found = (self._connection.execute(query.where(interactions.c.id.in_(some))) for some in in_parts(ids))
        return {row for rows in found for row in rows.scalars()}

    def before(self, user_id: str, turn_id: int, limit: int) -> list[Interaction]:
        query = select(*COLUMNS).where(*self._mine(user_id), interactions.c.id < turn_id)
        rows = self._connection.execute(query.order_by(interactions.c.id.desc()).limit(limit)).all()
        return [read_row(row) for row in reversed(rows)]

    def mark_learned(self, ids: Sequence[int]) -> int:
        these = interactions.c.id.in_(ids) & ~interactions.c.is_learned
        change = update(interactions).where(self._of_org, these).values(is_learned=True)
        return self._connection.execute(change).rowcount

    def count_unlearned(self, request_id: str) -> int:
        mine = *self._mine(None), interactions.c.request_id == request_id, ~interactions.c.is_learned
        return int(self._connection.execute(select(func.count()).select_from(interactions).where(*mine)).scalar_one())

    def remove(self, user_id: str, interaction_id: int) -> int:
        return self.remove_where(*self._mine(user_id), interactions.c.id == interaction_id)

    def remove_all(self, user_id: str | None = None) -> int:
        return self.remove_where(*self._mine(user_id))

    def remove_where(self, *which: ColumnElement[bool]) -> int:
        ids = list(self._connection.execute(select(interactions.c.id).where(*which)).scalars())
        TURN_WORDS.drop(self._connection, ids)
        forget(self._connection, TURN, ids)
        self._connection.execute(delete(interactions).where(*which))
        return len(ids)

    def count(self, user_id: str | None = None) -> int:
        query = select(func.count()).select_from(interactions).where(*self._mine(user_id))
        return int(self._connection.execute(query).scalar_one())

    def count_unembedded(self, user_id: str) -> int:
        waiting = ~interactions.c.is_indexed | without_vector(TURN, interactions.c.id)
        query = select(func.count()).select_from(interactions).where(*self._mine(user_id), waiting)
        return int(self._connection.execute(query).scalar_one())

    def newest(self, where: TurnFilter, limit: int) -> list[int]:
        column = interactions.c
        query = select(column.id).where(*self._mine(None), *_asked(where))
        newest = query.order_by(column.created_at.desc(), column.id.desc()).limit(limit)
        return list(self._connection.execute(newest).scalars())

    def _passing(self, where: TurnFilter, ids: Sequence[int]) -> set[int]:
        query = select(interactions.c.id).where(self._of_org, *_asked(where))
        named = ids if where.ids is None else list(set(where.ids).intersection(ids))
        found = (self._connection.execute(query.where(interactions.c.id.in_(some))) for some in in_parts(named))
        return {row for rows in found for row in rows.scalars()}

    def by_words(self, where: TurnFilter, query: str, limit: int) -> Matched:
        scope = Scope.of(self._org, TURN, where.user_id)
        found = TURN_WORDS.match(
            self._connection, scope, query, limit, lambda ids: self._passing(where, ids), lambda: where.ids
        )
        coverage = tuple(found.coverage.tolist())
        return Matched(tuple(found.ids.tolist()), tuple(found.scores.tolist()), coverage, spread=found.spread)

    def by_vector(self, where: TurnFilter, query: QueryVector, limit: int, also: Sequence[int] = ()) -> Matched:
        shelf = self._shelves.of(self._org, TURN, query.model)
        stored = findable(self._connection, TURN_WORDS, Scope.of(self._org, TURN, where.user_id))
        return shelf.nearest(
            query.numbers,
            limit,
            also,
            lambda ids: self._passing(where, ids),
            complete=shelf.catch_up(self._connection),
            stored=stored if where.ids is None else min(stored, len(where.ids)),
            user=where.user_id,
            within=where.ids,
        )
