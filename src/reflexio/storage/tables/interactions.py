"""What was published: requests, their turns, and the users whose turns wait to be learned from."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    Text,
    and_,
    case,
    cast,
    delete,
    exists,
    func,
    insert,
    literal_column,
    select,
    tuple_,
    update,
)
from sqlalchemy.exc import IntegrityError

from reflexio.errors import Conflict
from reflexio.models.interaction import Citation, Interaction, InteractionData, Request, RetrievedLearning, ToolUsed
from reflexio.models.learning import Kind
from reflexio.models.paging import Listing, Page
from reflexio.models.wire import RequestModel
from reflexio.ports.storage import (
    Backlog,
    Days,
    Matched,
    QueryVector,
    RemovedRequests,
    RequestFilter,
    TimeRange,
    TurnFilter,
    TurnScope,
    Unlearned,
    VersionRequests,
    Waiting,
    WaitingUsers,
)
from reflexio.storage.compiled import CompiledStatement
from reflexio.storage.fulltext.terms import TermScope
from reflexio.storage.queries import (
    BYTES_OF_NAMES,
    OrganisationRows,
    attributes,
    equal,
    in_batches,
    in_time_range,
    insert_for,
    organisations_with,
    owned_by,
    within_letters,
    written_bytes,
)
from reflexio.storage.schema import finished_steps, interactions, requests, users
from reflexio.storage.tables.embeddings import (
    LETTERS_AT_ONCE,
    TURN,
    TURN_INDEX,
    forget_vectors,
    is_unembedded,
    letters_of,
)
from reflexio.storage.tables.exposures import forget_turns
from reflexio.storage.vectors.search import VectorSearch

REQUESTS_AT_ONCE = 100
REMOVED_REQUESTS, REMOVED_TURNS = 100, 200
"""In one write, which every other writer waits for: some 15 ms."""
BYTES_OF_LETTER = 6
"""Of the longest in JSON, an escaped one."""
REQUEST_FIELDS = list(Request.model_fields)
REQUEST_COLUMNS = [requests.c[name] for name in REQUEST_FIELDS]
# The image stays on disk: lists show its URL, and learning reads the image when needed.
TURN_FIELDS = [name for name in Interaction.model_fields if name != "interaction_id"]
TURN_COLUMNS = [interactions.c.id, *(interactions.c[name] for name in TURN_FIELDS)]
TURN_NAMES = ["interaction_id", *TURN_FIELDS]
LISTS: dict[str, type[RequestModel]] = {
    "tools_used": ToolUsed,
    "citations": Citation,
    "retrieved_learnings": RetrievedLearning,
}
WAITING_COLUMNS = [users.c[name] for name in Waiting.__dataclass_fields__]
# In the words of the index.
IS_UNREAD = interactions.c.profiles_unread | interactions.c.playbooks_unread
UNREAD = {Kind.PROFILE: interactions.c.profiles_unread, Kind.USER_PLAYBOOK: interactions.c.playbooks_unread}
# What is in the word index or in other tables takes eight times as long to remove as other text.
REMOVAL_LETTERS = letters_of("content", "retrieved_learnings") + (
    letters_of("shadow_content", "expert_content", "user_action_description", "tools_used", "image_encoding") / 8
)
IS_WAITING = users.c.unlearned_since > literal_column("0")
SAME_REQUEST = (requests.c.org_id == interactions.c.org_id) & (requests.c.request_id == interactions.c.request_id)

ADD_REQUEST = CompiledStatement(lambda _: insert(requests), ["org_id", *REQUEST_FIELDS])
ADD_TURN = CompiledStatement(lambda _: insert(interactions), [*TURN_FIELDS, "org_id", "image_encoding", "is_learned"])


def _mark_unlearned(dialect: str) -> Insert:
    statement = insert_for(dialect)(users)
    new = statement.excluded
    since = case((users.c.unlearned_since > literal_column("0"), users.c.unlearned_since), else_=new.unlearned_since)
    return statement.on_conflict_do_update(
        index_elements=["org_id", "user_id"], set_={"unlearned_since": since, "published_at": new.published_at}
    )


MARK_UNLEARNED = CompiledStatement(_mark_unlearned, ["org_id", "user_id", "unlearned_since", "published_at"])


def turn_row(org_id: str, request: Request, turn: InteractionData) -> dict[str, Any]:
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
        **{name: [entry.model_dump() for entry in getattr(turn, name)] or None for name in LISTS},
    }


def read_turn(row: Any) -> Interaction:
    values = dict(zip(TURN_NAMES, row, strict=True))
    for name, model in LISTS.items():
        if (entries := values.pop(name)) is not None:
            values[name] = [model.model_construct(**entry) for entry in entries]
    # Validation takes a third of the time of `model_construct`.
    return Interaction.model_validate(values)


def _read_request(row: Any) -> Request:
    return Request.model_validate(attributes(row, REQUEST_FIELDS))


class SqlRequests(OrganisationRows):
    def _where(self, where: RequestFilter) -> ColumnElement[bool]:
        named = equal(requests, where, ("user_id", "request_id", "session_id", "source"))
        return and_(requests.c.org_id == self._org, *named, *in_time_range(requests.c.created_at, where.within))

    def add(self, request: Request) -> None:
        try:
            ADD_REQUEST.run(self._connection, [{"org_id": self._org, **dict(request)}])
        except IntegrityError:
            raise Conflict(f"The request id {request.request_id!r} is taken; leave it out to get a new one.") from None

    def get(self, request_id: str) -> Request | None:
        query = select(*REQUEST_COLUMNS).where(self._where(RequestFilter(request_id=request_id)))
        return self._one(query, _read_request)

    def page(self, where: RequestFilter, page: Page, *, offset: int = 0) -> Listing[Request]:
        query = select(requests.c.id, *REQUEST_COLUMNS).where(self._where(where)).offset(offset)
        return self._page(query, requests, page, _read_request)

    def finish(self, user_id: str, session_id: str) -> bool:
        last = select(func.max(requests.c.id)).where(self._where(RequestFilter(user_id, session_id=session_id)))
        is_last = requests.c.org_id == self._org, requests.c.id == last.scalar_subquery()
        return self._change(update(requests).where(*is_last).values(session_finished=True)) > 0

    def remove_some(self, where: RequestFilter | Sequence[str]) -> RemovedRequests:
        which = self._where(where) if isinstance(where, RequestFilter) else self._named(where)
        query = select(requests.c.id, requests.c.request_id).where(which).order_by(requests.c.id)
        found = self._connection.execute(query.limit(REMOVED_REQUESTS)).all()
        of_requests = interactions.c.request_id.in_([row.request_id for row in found])
        turns = _few_turns(self._connection, and_(interactions.c.org_id == self._org, of_requests))
        _remove_turns(self._connection, turns.ids)
        if not turns.is_all:
            return RemovedRequests(0, len(turns.ids))
        self._change(delete(requests).where(requests.c.id.in_([row.id for row in found])))
        return RemovedRequests(len(found), len(turns.ids))

    def _named(self, request_ids: Sequence[str]) -> ColumnElement[bool]:
        return and_(requests.c.org_id == self._org, requests.c.request_id.in_(request_ids))

    def by_version(self, within: TimeRange, versions: Sequence[str] | None = None) -> list[VersionRequests]:
        counts = func.count(), func.count(requests.c.session_id.distinct()), func.count(requests.c.user_id.distinct())
        newest = func.max(requests.c.created_at)
        query = select(requests.c.agent_version, *counts, newest)
        query = query.where(self._where(RequestFilter(within=within)), ~requests.c.evaluation_only)
        if versions is not None:
            query = query.where(requests.c.agent_version.in_(versions))
        query = query.group_by(requests.c.agent_version).order_by(newest.desc(), requests.c.agent_version)
        return self._rows(query, lambda row: VersionRequests(*row))

    def count_by_day(self, days: Days) -> dict[int, int]:
        return self._count_by_day(requests, days)

    def sum_redacted(self, user_id: str) -> int:
        total = select(func.sum(requests.c.redacted_count)).where(self._where(RequestFilter(user_id)))
        return int(self._connection.execute(total).scalar_one() or 0)

    def count(self, user_id: str | None = None) -> int:
        return self._count(requests, self._where(RequestFilter(user_id)))


def _turn_filter(where: TurnFilter) -> list[ColumnElement[bool]]:
    named = equal(interactions, where, ("user_id", "request_id"))
    return [*named, *in_time_range(interactions.c.created_at, where.within)]


class _FewTurns(NamedTuple):
    ids: list[int]
    is_all: bool


def _few_turns(connection: Connection, which: ColumnElement[bool]) -> _FewTurns:
    """The oldest turns of many, as many as one write may remove, and whether there are no others."""
    query = select(interactions.c.id, REMOVAL_LETTERS).where(which).order_by(interactions.c.id)
    with connection.execute(query.limit(REMOVED_TURNS)) as rows:
        ids = [number for number, _ in within_letters(rows, LETTERS_AT_ONCE)]
    others = select(interactions.c.id).where(which, interactions.c.id > max(ids, default=0)).limit(1)
    return _FewTurns(ids, is_all=connection.execute(others).first() is None)


def _remove_turns(connection: Connection, ids: Sequence[int]) -> int:
    """Removes few turns: every writer waits for it."""
    which = interactions.c.id.in_(ids)
    # What a model was paid for quotes the turns.
    same_user = interactions.c.org_id == finished_steps.c.org_id, interactions.c.user_id == finished_steps.c.user_id
    connection.execute(delete(finished_steps).where(exists().where(*same_user, which)))
    TURN_INDEX.drop(connection, ids)
    forget_vectors(connection, TURN, ids)
    forget_turns(connection, ids)
    return connection.execute(delete(interactions).where(which)).rowcount


class SqlInteractions(OrganisationRows):
    def __init__(self, connection: Connection, org_id: str, vectors: VectorSearch) -> None:
        super().__init__(connection, org_id)
        self._vectors = vectors

    def _of_user(self, user_id: str | None) -> list[ColumnElement[bool]]:
        own = [interactions.c.org_id == self._org]
        return own if user_id is None else [*own, interactions.c.user_id == user_id]

    def _by_ids(self, columns: Sequence[Any], ids: Sequence[int], *where: ColumnElement[bool]) -> list[Any]:
        query = select(*columns).where(owned_by(interactions.c.org_id, self._org), *where)
        batches = (query.where(interactions.c.id.in_(batch)) for batch in in_batches(ids))
        return [row for some in batches for row in self._connection.execute(some)]

    def add(self, request: Request, turns: Sequence[InteractionData]) -> None:
        ADD_TURN.run(self._connection, [turn_row(self._org, request, turn) for turn in turns])

    def page(self, user_id: str | None, within: TimeRange, page: Page) -> Listing[Interaction]:
        where = *self._of_user(user_id), *in_time_range(interactions.c.created_at, within)
        return self._page(select(*TURN_COLUMNS).where(*where), interactions, page, read_turn)

    def of_requests(self, request_ids: Sequence[str]) -> list[Interaction]:
        query = select(*TURN_COLUMNS).where(*self._of_user(None), interactions.c.request_id.in_(request_ids))
        return self._rows(query.order_by(interactions.c.id), read_turn)

    def of_first_requests(self, request_ids: Sequence[str], most_bytes: int) -> tuple[list[Interaction], int]:
        turns: list[Interaction] = []
        room, taken = most_bytes, 0
        for batch in in_batches(request_ids, REQUESTS_AT_ONCE):
            # Long requests are read one by one, so that no more than one beyond the page is held.
            for some in [batch] if self._is_short(batch, room) else [[request_id] for request_id in batch]:
                query = select(*TURN_COLUMNS).where(*self._of_user(None), interactions.c.request_id.in_(some))
                rows = self._connection.execute(query.order_by(interactions.c.id)).all()
                room -= sum(map(written_bytes, rows))
                if taken and room < 0:
                    return turns, taken
                turns += map(read_turn, rows)
                taken += len(some)
        return turns, taken

    def _is_short(self, request_ids: Sequence[str], most_bytes: int) -> bool:
        """Whether the turns of these requests fit for sure, whatever letters they have."""
        column = interactions.c
        names = "content", "expert_content", "shadow_content", "role", "user_action_description", *LISTS
        letters: ColumnElement[int] = literal_column("0")
        for name in names:
            letters = letters + func.coalesce(func.length(cast(column[name], Text)), 0)
        query = select(func.count(), func.coalesce(func.sum(letters), 0))
        of_requests = query.where(*self._of_user(None), column.request_id.in_(request_ids))
        turns, most_letters = self._connection.execute(of_requests).one()
        return int(most_letters) * BYTES_OF_LETTER + int(turns) * 4 * BYTES_OF_NAMES <= most_bytes

    def many(self, ids: Sequence[int]) -> dict[int, Interaction]:
        return {row.id: read_turn(row) for row in self._by_ids(TURN_COLUMNS, ids)}

    def unlearned(self, user_id: str, limit: int, *, request_id: str | None = None) -> list[Unlearned]:
        query = select(*TURN_COLUMNS).where(*self._of_user(user_id), ~interactions.c.is_learned)
        if request_id is not None:
            query = query.where(interactions.c.request_id == request_id)
        return self._with_requests(self._rows(query.order_by(interactions.c.id).limit(limit), read_turn))

    def backlogs(self, user_ids: Sequence[str]) -> dict[str, Backlog]:
        urgent = func.max(case((requests.c.session_finished | requests.c.force_extraction, 1), else_=0))
        query = (
            select(interactions.c.user_id, func.count(), urgent)
            .join_from(interactions, requests, SAME_REQUEST)
            .where(interactions.c.org_id == self._org, ~interactions.c.is_learned)
            .group_by(interactions.c.user_id)
        )
        batches = (query.where(interactions.c.user_id.in_(batch)) for batch in in_batches(user_ids))
        rows = (row for some in batches for row in self._connection.execute(some))
        return {user_id: Backlog(turns, bool(is_urgent)) for user_id, turns, is_urgent in rows}

    def _with_requests(self, turns: Sequence[Interaction]) -> list[Unlearned]:
        known: dict[str, Request] = {}
        for batch in in_batches(sorted({turn.request_id for turn in turns})):
            query = select(*REQUEST_COLUMNS).where(requests.c.org_id == self._org, requests.c.request_id.in_(batch))
            for row in self._connection.execute(query):
                known[row.request_id] = Request.model_construct(**row._mapping)
        return [Unlearned(turn, known[turn.request_id]) for turn in turns if turn.request_id in known]

    def _in_scope(self, where: TurnScope, user_id: str | None) -> list[ColumnElement[bool]]:
        return [
            *self._of_user(user_id),
            *in_time_range(interactions.c.created_at, where.within),
            ~requests.c.evaluation_only,
            SAME_REQUEST,
            *equal(requests, where, ("agent_version", "source")),
            *([IS_UNREAD, UNREAD[where.only_unread]] if where.only_unread else []),
        ]

    def users(self, where: TurnScope) -> list[str]:
        query = select(interactions.c.user_id).distinct().where(*self._in_scope(where, where.user_id))
        return self._scalars(query.order_by(interactions.c.user_id))

    def within(self, where: TurnScope, user_id: str, *, last: int | None = None) -> list[Unlearned]:
        query = select(*TURN_COLUMNS).where(*self._in_scope(where, user_id)).order_by(interactions.c.id.desc())
        return self._with_requests(self._rows(query.limit(last), read_turn)[::-1])

    def unlearned_among(self, ids: Sequence[int]) -> set[int]:
        return {row.id for row in self._by_ids([interactions.c.id], ids, ~interactions.c.is_learned)}

    def before(self, user_id: str, turn_id: int, limit: int) -> list[Interaction]:
        query = select(*TURN_COLUMNS).where(*self._of_user(user_id), interactions.c.id < turn_id)
        return self._rows(query.order_by(interactions.c.id.desc()).limit(limit), read_turn)[::-1]

    def mark_learned(self, ids: Sequence[int]) -> int:
        own = owned_by(interactions.c.org_id, self._org), interactions.c.id.in_(ids) & ~interactions.c.is_learned
        return self._change(update(interactions).where(*own).values(is_learned=True))

    def mark_unread(self, ids: Sequence[int], kinds: Collection[Kind], *, is_unread: bool = True) -> None:
        for kind in kinds:
            own = owned_by(interactions.c.org_id, self._org), UNREAD[kind] != is_unread
            for batch in in_batches(ids):
                change = update(interactions).where(*own, interactions.c.id.in_(batch))
                self._change(change.values({UNREAD[kind]: is_unread}))

    def count_unread(self, user_id: str | None = None) -> int:
        return self._count(interactions, *self._of_user(user_id), IS_UNREAD)

    def count_unlearned(self, request_id: str) -> int:
        where = *self._of_user(None), interactions.c.request_id == request_id, ~interactions.c.is_learned
        return self._count(interactions, *where)

    def remove(self, user_id: str, interaction_id: int) -> int:
        which = and_(*self._of_user(user_id), interactions.c.id == interaction_id)
        return _remove_turns(self._connection, _few_turns(self._connection, which).ids)

    def count(self, user_id: str | None = None) -> int:
        return self._count(interactions, *self._of_user(user_id))

    def count_by_day(self, days: Days) -> dict[int, int]:
        return self._count_by_day(interactions, days)

    def count_unembedded(self, user_id: str) -> int:
        waiting = ~interactions.c.is_indexed | is_unembedded(TURN, interactions.c.id)
        return self._count(interactions, *self._of_user(user_id), waiting)

    def newest(self, where: TurnFilter, limit: int) -> list[int]:
        column = interactions.c
        query = select(column.id).where(*self._of_user(None), *_turn_filter(where))
        return self._scalars(query.order_by(column.created_at.desc(), column.id.desc()).limit(limit))

    def _passing(self, where: TurnFilter, ids: Sequence[int]) -> set[int]:
        candidates = ids if where.ids is None else list(set(where.ids).intersection(ids))
        return {row.id for row in self._by_ids([interactions.c.id], candidates, *_turn_filter(where))}

    def by_words(self, where: TurnFilter, query: str, limit: int) -> Matched:
        scope = TermScope.of(self._org, TURN, where.user_id)
        return TURN_INDEX.match(
            self._connection, scope, query, limit, lambda ids: self._passing(where, ids), lambda: where.ids
        )

    def by_vector(self, where: TurnFilter, query: QueryVector, limit: int, also: Sequence[int] = ()) -> Matched:
        vectors = self._vectors.of(self._org, TURN, query.model)
        stored = TURN_INDEX.count(self._connection, TermScope.of(self._org, TURN, where.user_id))
        return vectors.nearest(
            query.numbers,
            limit,
            also,
            lambda ids: self._passing(where, ids),
            complete=vectors.catch_up(self._connection),
            stored=stored if where.ids is None else min(stored, len(where.ids)),
            user=where.user_id,
            within=where.ids,
        )

    def cosines(self, ids: Sequence[int], query: QueryVector) -> dict[int, float]:
        vectors = self._vectors.of(self._org, TURN, query.model)
        complete = vectors.catch_up(self._connection)
        matched = vectors.nearest(
            query.numbers, len(ids), (), lambda found: found, complete=complete, stored=0, user=None, within=ids
        )
        return dict(zip(matched.ids, matched.scores, strict=True))


def waiting_organisations(connection: Connection, limit: int, after: str) -> list[str]:
    """Organisations with turns to learn from."""
    return organisations_with(connection, users.c.org_id, IS_WAITING, limit, after)


class SqlUsers(OrganisationRows):
    def mark_unlearned(self, user_id: str, now: int) -> None:
        row = {"org_id": self._org, "user_id": user_id, "unlearned_since": now, "published_at": now}
        MARK_UNLEARNED.run(self._connection, [row])

    def waiting(self, user_id: str) -> Waiting | None:
        return self._one(select(*WAITING_COLUMNS).where(self._is_user(user_id)), lambda row: Waiting(*row))

    def longest_waiting(self, limit: int, *, after: Waiting | None = None) -> list[Waiting]:
        order = users.c.unlearned_since, users.c.user_id
        query = select(*WAITING_COLUMNS).where(users.c.org_id == self._org, IS_WAITING)
        if after is not None:
            query = query.where(tuple_(*order) > tuple_(after.unlearned_since, after.user_id))
        return self._rows(query.order_by(*order).limit(limit), lambda row: Waiting(*row))

    def all_waiting(self) -> WaitingUsers:
        is_waiting = and_(users.c.org_id == self._org, IS_WAITING)
        has_failed = and_(is_waiting, users.c.attempts > 0)
        counts = func.count(), func.sum(case((has_failed, 1), else_=0)), func.min(users.c.unlearned_since)
        count, failed, since = self._connection.execute(select(*counts).where(is_waiting)).one()
        newest = select(users.c.last_error).where(has_failed).order_by(users.c.retry_at.desc()).limit(1)
        return WaitingUsers(count, int(failed or 0), since or 0, next(iter(self._scalars(newest)), ""))

    def reserve(self, user_id: str, until: int) -> None:
        self._change(update(users).where(self._is_user(user_id)).values(reserved_until=until))

    def clear_unlearned(self, user_id: str) -> None:
        turns = interactions.c.org_id == self._org, interactions.c.user_id == user_id, ~interactions.c.is_learned
        since = case((exists().where(*turns), users.c.unlearned_since), else_=0)
        change = update(users).where(self._is_user(user_id))
        self._change(change.values(unlearned_since=since, attempts=0, retry_at=0, last_error=""))

    def postpone(self, user_id: str, retry_at: int, error: str) -> None:
        change = update(users).where(self._is_user(user_id))
        self._change(change.values(attempts=users.c.attempts + 1, retry_at=retry_at, last_error=error))

    def wake(self) -> int:
        return self._change(update(users).where(users.c.org_id == self._org, users.c.retry_at > 0).values(retry_at=0))

    def remove(self, user_id: str) -> int:
        return self._change(delete(users).where(self._is_user(user_id)))

    def _is_user(self, user_id: str) -> ColumnElement[bool]:
        return and_(users.c.org_id == self._org, users.c.user_id == user_id)
