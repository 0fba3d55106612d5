"""Learnings: profiles, user playbooks and agent playbooks in one table, with their words beside them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, bindparam, case, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from reflexio.errors import Conflict
from reflexio.models.learning import Kind, Learning
from reflexio.models.paging import Listing, Page
from reflexio.models.status import PlaybookStatus, Status
from reflexio.ports.storage import LearningFilter, LineageEvent, Matched, QueryVector, Tally
from reflexio.storage.hot import Look
from reflexio.storage.paging import in_parts, listing, owned
from reflexio.storage.passing import among, asked, condition, count_of, first_of
from reflexio.storage.schema import learnings, lineage
from reflexio.storage.search.scope import Scope
from reflexio.storage.search.shelves import Shelves
from reflexio.storage.search.words import Row, Words
from reflexio.storage.vectors import enqueue, findable, forget, without_vector

WORDS = Words("learning")
FEW = 5_000
COLUMNS = list(learnings.c)
NAMES = [column.name for column in COLUMNS]
PLAIN = [
    "user_id",
    "agent_version",
    "name",
    "source",
    "request_id",
    "content",
    "trigger",
    "rationale",
    "cluster",
    "details",
    "created_at",
    "modified_at",
    "expires_at",
]


def _row(org_id: str, learning: Learning) -> dict[str, Any]:
    return {
        "org_id": org_id,
        "kind": learning.kind.value,
        "key": learning.key or None,
        "tags": "|".join(("", *learning.tags, "")) if learning.tags else "",
        "status": learning.status.value,
        "review": learning.review.value if learning.kind is Kind.AGENT_PLAYBOOK else "",
        **{name: getattr(learning, name) for name in PLAIN},
    }


def _read(row: Sequence[Any]) -> Learning:
    stored = dict(zip(NAMES, row, strict=True))
    tags, review = stored["tags"], stored["review"]
    return Learning(
        kind=Kind(stored["kind"]),
        id=stored["id"],
        key=stored["key"] or "",
        tags=tuple(tags.strip("|").split("|")) if tags else (),
        status=Status(stored["status"]),
        review=PlaybookStatus(review) if review else PlaybookStatus.PENDING,
        **{name: stored[name] for name in PLAIN},
    )


MANY = Look(
    select(*COLUMNS).where(
        owned(learnings.c.org_id, bindparam("org")), learnings.c.id.in_(bindparam("ids", expanding=True))
    )
)


class SqlLearnings:
    def __init__(self, connection: Connection, org_id: str, shelves: Shelves) -> None:
        self._connection = connection
        self._org = org_id
        self._shelves = shelves
        self._passed: dict[LearningFilter, frozenset[int] | None] = {}
        self._open: dict[LearningFilter, bool] = {}

    def _where(self, where: LearningFilter) -> ColumnElement[bool]:
        return condition(asked(where, self._org))

    def add(self, new: Sequence[Learning]) -> list[int]:
        self._passed.clear()
        self._open.clear()
        rows = [_row(self._org, each) for each in new]
        try:
            # Undone as a whole when a key is taken: only then do the stored keys tell which one it was.
            with self._connection.begin_nested():
                # Many rows a statement: rows are numbered in the order they are given in. One statement a row, inside
                # a savepoint, makes SQLite walk through its whole journal each time: seconds for a thousand rows.
                ids = sorted(self._connection.execute(insert(learnings).returning(learnings.c.id), rows).scalars())
        except IntegrityError:
            taken = self._taken(new)
            raise Conflict(f"A profile with the id {taken!r} exists; leave the id out to get a new one.") from None
        self._index(ids, new)
        return ids

    def _taken(self, new: Sequence[Learning]) -> str:
        query = select(learnings.c.key).where(
            learnings.c.org_id == self._org, learnings.c.key.in_([each.key for each in new])
        )
        stored = self._connection.execute(query).scalars().first()
        return str(stored or next(each.key for each in new if sum(each.key == other.key for other in new) > 1))

    def _index(self, ids: Sequence[int], rows: Sequence[Learning]) -> None:
        WORDS.put(
            self._connection,
            [
                Row(number, Scope.of(self._org, each.kind, each.user_id), each.text)
                for number, each in zip(ids, rows, strict=True)
            ],
        )
        enqueue(self._connection, self._org, rows[0].kind.value, ids)

    def get(self, where: LearningFilter) -> Learning | None:
        row = self._connection.execute(select(*COLUMNS).where(self._where(where)).limit(1)).one_or_none()
        return _read(row) if row else None

    def many(self, ids: Sequence[int]) -> dict[int, Learning]:
        found = (MANY.rows(self._connection, {"org": self._org, "ids": list(some)}) for some in in_parts(ids))
        return {row[0]: _read(row) for rows in found for row in rows}

    def page(self, where: LearningFilter, page: Page) -> Listing[Learning]:
        return listing(self._connection, select(*COLUMNS).where(self._where(where)), learnings, page, _read)

    def replace(self, learning: Learning) -> None:
        self._passed.clear()
        self._open.clear()
        mine = and_(learnings.c.org_id == self._org, learnings.c.id == learning.id)
        query = select(learnings.c.trigger, learnings.c.content, learnings.c.user_id).where(mine)
        before = self._connection.execute(query).one()
        self._connection.execute(update(learnings).where(mine).values(**_row(self._org, learning)))
        if tuple(before) != (learning.trigger, learning.content, learning.user_id):
            # The vector of what it said before would find it by that.
            forget(self._connection, learning.kind.value, [learning.id])
            self._index([learning.id], [learning])

    def move(self, where: LearningFilter, moves: Mapping[Status, Status]) -> dict[int, Status]:
        self._passed.clear()
        self._open.clear()
        named = self._where(replace(where, statuses=tuple(moves), or_in_review=False))
        rows = self._connection.execute(select(learnings.c.id, learnings.c.status).where(named)).all()
        after = case({before.value: to.value for before, to in moves.items()}, value=learnings.c.status)
        self._connection.execute(update(learnings).where(named).values(status=after))
        return {row.id: Status(row.status) for row in rows}

    def remove(self, where: LearningFilter) -> int:
        self._passed.clear()
        self._open.clear()
        query = select(learnings.c.id).where(self._where(where))
        ids = list(self._connection.execute(query).scalars())
        WORDS.drop(self._connection, ids)
        forget(self._connection, where.kind.value, ids)
        self._connection.execute(delete(learnings).where(self._where(where)))
        return len(ids)

    def count(self, where: LearningFilter) -> int:
        query = select(func.count()).select_from(learnings).where(self._where(where))
        return int(self._connection.execute(query).scalar_one())

    def _passing(self, where: LearningFilter, ids: Sequence[int]) -> Collection[int]:
        if where.user_id is not None:
            if self._all_pass(where):
                return ids
            if (few := self._few(where)) is not None:
                return few.intersection(ids)
        values = asked(where, self._org, by_id=True)
        look = among(tuple(values))
        found = (look.rows(self._connection, {**values, "among": list(some)}) for some in in_parts(ids))
        return {row for rows in found for (row,) in rows}

    def by_words(self, where: LearningFilter, query: str, limit: int) -> Matched:
        scope = Scope.of(self._org, where.kind, where.user_id)
        found = WORDS.match(
            self._connection,
            scope,
            query,
            limit,
            lambda ids: self._passing(where, ids),
            lambda: None if self._all_pass(where) else self._listed(where),
            is_narrow=where.is_narrow or where.reviews is not None,
        )
        coverage = tuple(found.coverage.tolist())
        return Matched(tuple(found.ids.tolist()), tuple(found.scores.tolist()), coverage, spread=found.spread)

    def by_vector(self, where: LearningFilter, query: QueryVector, limit: int, also: Sequence[int] = ()) -> Matched:
        shelf = self._shelves.of(self._org, where.kind.value, query.model)
        chosen = where.is_narrow or (where.user_id is not None and not self._all_pass(where))
        within = self._listed(where) if chosen else None
        return shelf.nearest(
            query.numbers,
            limit,
            also,
            lambda ids: self._passing(where, ids),
            complete=shelf.catch_up(self._connection),
            stored=self._findable(where) if within is None else len(within),
            user=where.user_id if within is None else None,
            within=within,
        )

    def _findable(self, where: LearningFilter) -> int:
        return findable(self._connection, WORDS, Scope.of(self._org, where.kind, where.user_id))

    def _all_pass(self, where: LearningFilter) -> bool:
        """Whether nothing of what the user has is hidden: to count is cheaper than to list, and usually enough."""
        if where.user_id is None or where.is_narrow:
            return False
        if where not in self._open:
            values = asked(where, self._org)
            ((count,),) = count_of(tuple(values)).rows(self._connection, values)
            self._open[where] = count == self._findable(where)
        return self._open[where]

    def _few(self, where: LearningFilter) -> frozenset[int] | None:
        """The rows that pass, when they are so few that reading them all is cheaper than looking on. Words and
        vectors of one search ask the same."""
        if where not in self._passed:
            values = asked(where, self._org)
            rows = first_of(tuple(values)).rows(self._connection, {**values, "most": FEW + 1})
            self._passed[where] = frozenset(row for (row,) in rows) if len(rows) <= FEW else None
        return self._passed[where]

    def _listed(self, where: LearningFilter) -> list[int] | None:
        few = self._few(where)
        return None if few is None else sorted(few)

    def note(self, *events: LineageEvent) -> None:
        rows = [
            {
                "org_id": self._org,
                "learning_id": event.learning_id,
                "kind": event.kind.value,
                "op": event.op,
                "actor": event.actor,
                "reason": event.reason,
                "from_status": event.from_status,
                "to_status": event.to_status,
                "details": event.details or None,
                "created_at": event.at,
            }
            for event in events
        ]
        if rows:
            self._connection.execute(insert(lineage), rows)

    def lineage(self, learning_id: int) -> list[LineageEvent]:
        query = (
            select(lineage)
            .where(lineage.c.org_id == self._org, lineage.c.learning_id == learning_id)
            .order_by(lineage.c.id)
        )
        return [
            LineageEvent(
                learning_id=row.learning_id,
                kind=Kind(row.kind),
                op=row.op,
                at=row.created_at,
                actor=row.actor,
                reason=row.reason,
                from_status=row.from_status,
                to_status=row.to_status,
                details=row.details or {},
            )
            for row in self._connection.execute(query)
        ]

    def tally(self, user_id: str, now: int) -> Tally:
        profile, playbook = (
            LearningFilter(kind, user_id=user_id, alive_at=now) for kind in (Kind.PROFILE, Kind.USER_PLAYBOOK)
        )
        ends = select(func.min(learnings.c.modified_at), func.max(learnings.c.modified_at))
        oldest, newest = self._connection.execute(ends.where(self._where(profile))).one()
        waiting = select(func.count()).select_from(learnings)
        mine = learnings.c.org_id == self._org, learnings.c.user_id == user_id
        unembedded = self._connection.execute(waiting.where(*mine, without_vector(learnings.c.kind, learnings.c.id)))
        return Tally(self.count(profile), self.count(playbook), oldest or 0, newest or 0, int(unembedded.scalar_one()))
