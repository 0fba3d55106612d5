"""A generation takes the place of another within what was named, and no row beyond it changes."""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflexio.learning.upgrade import affected_users, downgrade, promote, upgrade
from reflexio.models.learning import Kind, Learning, Status
from reflexio.models.operation import Downgrade, Upgrade
from reflexio.models.paging import Page
from reflexio.models.wire import NEVER_EXPIRES
from reflexio.ports.storage import Database, LearningFilter, Store, Tx
from reflexio.storage.sqlite import open_sqlite
from tests.builders import name

NOW = 1000
CURRENT, PENDING, ARCHIVED = Status.CURRENT, Status.PENDING, Status.ARCHIVED
Act = TypeVar("Act", Upgrade, Downgrade)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = open_sqlite(tmp_path / "reflexio.db")
    yield opened
    await opened.close()


def profile(status: Status, user_id: str = "ann", content: str = "", expires_at: int = NEVER_EXPIRES) -> Learning:
    return Learning(
        Kind.PROFILE,
        content or f"{user_id} {status.value}",
        key=name("key"),
        user_id=user_id,
        status=status,
        created_at=5,
        modified_at=7,
        expires_at=expires_at,
    )


async def stored(store: Store, rows: list[Learning]) -> list[Learning]:
    if not rows:
        return []
    by_kind = {kind: [row for row in rows if row.kind is kind] for kind in {row.kind for row in rows}}
    for some in by_kind.values():
        await store.write(lambda tx, some=some: tx.learnings.add(some))  # type: ignore[misc]
    return await everything(store)


async def everything(store: Store) -> list[Learning]:
    def look(tx: Tx) -> list[Learning]:
        kinds = [LearningFilter(kind, statuses=None) for kind in Kind]
        return [row for where in kinds for row in tx.learnings.page(where, Page(10_000)).rows]

    return await store.read(look)


async def statuses(store: Store) -> dict[str, str]:
    return {row.content: row.status.value for row in await everything(store)}


def whole(scope: LearningFilter, act: Callable[[Tx, LearningFilter, int], Act]) -> Callable[[Tx], Act]:
    return lambda tx: act(tx, scope, NOW)


ANN = LearningFilter(Kind.PROFILE, user_id="ann")
EVERYBODY = LearningFilter(Kind.PROFILE)


async def test_pending_becomes_current_and_the_last_two_generations_are_kept(database: Database) -> None:
    store = database.of("default")
    rows = [profile(status, content=status.value) for status in Status]
    await stored(store, rows)

    assert await store.write(whole(ANN, upgrade)) == Upgrade(promoted=1, archived=1, deleted=1)

    kept = {status.value: status.value for status in Status}
    del kept["archived"]
    assert await statuses(store) == {**kept, "pending": "current", "current": "archived"}
    assert {row.modified_at for row in await everything(store)} == {7}


async def test_without_pending_rows_nothing_changes(database: Database) -> None:
    store = database.of("default")
    before = await stored(store, [profile(CURRENT), profile(ARCHIVED), profile(PENDING, "bob")])
    assert await store.write(whole(ANN, upgrade)) == Upgrade()
    assert await everything(store) == before


async def test_what_expired_while_it_was_pending_takes_nobodys_place(database: Database) -> None:
    store = database.of("default")
    before = await stored(store, [profile(CURRENT), profile(PENDING, expires_at=NOW)])
    assert await store.write(whole(ANN, upgrade)) == Upgrade()
    assert await everything(store) == before


async def test_users_without_pending_rows_are_left_alone_when_asked(database: Database) -> None:
    store = database.of("default")
    users = [profile(CURRENT), profile(PENDING), profile(CURRENT, "bob"), profile(ARCHIVED, "bob")]
    await stored(store, users)
    done = await store.write(whole(affected_users(EVERYBODY, PENDING, NOW), upgrade))
    assert done == Upgrade(promoted=1, archived=1)
    assert await statuses(store) == {
        "ann current": "archived",
        "ann pending": "current",
        "bob current": "current",
        "bob archived": "archived",
    }


async def test_promoting_archives_and_deletes_nothing(database: Database) -> None:
    store = database.of("default")
    await stored(store, [profile(CURRENT), profile(PENDING), profile(ARCHIVED)])
    assert await store.write(whole(ANN, promote)) == Upgrade(promoted=1)
    assert Counter((await statuses(store)).values()) == {"current": 2, "archived": 1}


async def test_a_downgrade_takes_an_upgrade_back_and_again(database: Database) -> None:
    store = database.of("default")
    await stored(store, [profile(CURRENT, content="old"), profile(PENDING, content="new")])
    await store.write(whole(ANN, upgrade))
    assert await store.write(whole(ANN, downgrade)) == Downgrade(restored=1, demoted=1)
    assert await statuses(store) == {"old": "current", "new": "archived"}
    assert await store.write(whole(ANN, downgrade)) == Downgrade(restored=1, demoted=1)
    assert await statuses(store) == {"old": "archived", "new": "current"}


async def test_a_downgrade_without_archived_rows_demotes_nothing(database: Database) -> None:
    store = database.of("default")
    await stored(store, [profile(CURRENT), profile(ARCHIVED, "bob")])
    assert await store.write(whole(ANN, downgrade)) == Downgrade()
    assert await statuses(store) == {"ann current": "current", "bob archived": "archived"}
    affected = affected_users(EVERYBODY, ARCHIVED, NOW)
    assert await store.write(whole(affected, downgrade)) == Downgrade(restored=1)
    assert await statuses(store) == {"ann current": "current", "bob archived": "current"}


async def test_every_move_is_in_the_lineage(database: Database) -> None:
    store = database.of("default")
    rows = {row.content: row.id for row in await stored(store, [profile(CURRENT), profile(PENDING)])}
    await store.write(whole(ANN, upgrade))
    await store.write(whole(ANN, downgrade))

    async def moves(content: str) -> list[tuple[str, str, str, int]]:
        events = await store.read(lambda tx: tx.learnings.lineage(rows[content]))
        return [(event.op, event.from_status, event.to_status, event.at) for event in events]

    assert await moves("ann pending") == [
        ("promoted", "pending", "current", NOW),
        ("archived", "current", "archived", NOW),
    ]
    assert await moves("ann current") == [
        ("archived", "current", "archived", NOW),
        ("restored", "archived", "current", NOW),
    ]


async def test_what_was_promoted_is_found_and_what_was_archived_is_not(database: Database) -> None:
    store = database.of("default")
    await stored(store, [profile(CURRENT, content="drinks black tea"), profile(PENDING, content="drinks green tea")])
    await store.write(whole(ANN, upgrade))
    found = await store.read(lambda tx: tx.learnings.by_words(ANN, "tea", 9))
    held = await store.read(lambda tx: tx.learnings.many(found.ids))
    assert [row.content for row in held.values()] == ["drinks green tea"]


# A model of the same in a few lines of Python, against which the real one is held.

# Every kind of row there is, so that an act that reaches too far cannot but meet one it should not.
USERS, VERSIONS, TYPES = ("ann", "bob"), ("", "v1"), ("playbook", "tone")
STATUSES = (CURRENT, PENDING, ARCHIVED, Status.ARCHIVE_IN_PROGRESS, Status.SUPERSEDED)
EXPIRED = st.sets(st.tuples(st.sampled_from(USERS), st.sampled_from(STATUSES[:3])), max_size=1)
MISSING = st.sets(st.tuples(st.sampled_from(USERS), st.sampled_from(STATUSES[:3])), max_size=2)
Groups = set[tuple[str, Status]]


def population(missing: Groups, expired: Groups) -> list[Learning]:
    every = product(Kind, USERS, VERSIONS, TYPES, STATUSES)
    return [
        Learning(
            kind,
            "x",
            key=f"k{place}",
            user_id=user,
            agent_version=version,
            name=named,
            status=status,
            expires_at=NOW if (user, status) in expired else NOW + 1,
        )
        for place, (kind, user, version, named, status) in enumerate(every)
        if (user, status) not in missing
    ]


SCOPES = st.one_of(
    st.builds(
        lambda user, places: (Kind.PROFILE, {"user_id": user}, places),
        st.none() | st.sampled_from(USERS),
        st.none() | st.sets(st.integers(0, 39), min_size=15),
    ),
    st.builds(
        lambda version, named: (Kind.USER_PLAYBOOK, {"agent_version": version, "name": named}, None),
        st.none() | st.sampled_from(VERSIONS),
        st.none() | st.sampled_from(TYPES),
    ),
)


def expected(rows: list[Learning], scope: list[Learning], act: str, only_affected: bool) -> dict[int, Status | None]:
    """The status of every row afterwards; None is gone."""
    after: dict[int, Status | None] = {row.id: row.status for row in rows}
    source = ARCHIVED if act == "downgrade" else PENDING
    alive = [row for row in scope if row.status is source and row.expires_at > NOW]
    users = {row.user_id for row in alive}
    if not alive:
        return after
    for row in scope:
        if only_affected and row.user_id not in users:
            continue
        match act, row.status:
            case ("upgrade", Status.ARCHIVED):
                after[row.id] = None
            case ("upgrade" | "downgrade", Status.CURRENT):
                after[row.id] = ARCHIVED
            case ("upgrade" | "promote", Status.PENDING) if row.expires_at > NOW:
                after[row.id] = CURRENT
            case ("downgrade", Status.ARCHIVED):
                after[row.id] = CURRENT
    return after


@settings(
    max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    missing=MISSING,
    expired=EXPIRED,
    named=SCOPES,
    act=st.sampled_from([upgrade, promote, downgrade]),
    only_affected=st.booleans(),
)
@pytest.mark.slow
async def test_no_row_beyond_the_scope_ever_changes(
    database: Database,
    missing: Groups,
    expired: Groups,
    named: tuple[Kind, dict[str, str | None], set[int] | None],
    act: Callable[[Tx, LearningFilter, int], Upgrade | Downgrade],
    only_affected: bool,
) -> None:
    store, elsewhere = database.of(name("org")), database.of(name("org"))
    before, theirs = [await stored(each, population(missing, expired)) for each in (store, elsewhere)]
    kind, fields, places = named
    keys = None if places is None else tuple(f"k{place}" for place in places)
    scope = [
        row
        for row in before
        if row.kind is kind
        and all(value is None or getattr(row, field) == value for field, value in fields.items())
        and (keys is None or row.key in keys)
    ]
    where = LearningFilter(kind, keys=keys, **fields)  # type: ignore[arg-type]
    if only_affected:
        where = affected_users(where, ARCHIVED if act is downgrade else PENDING, NOW)

    done = await store.write(lambda tx: act(tx, where, NOW))

    wanted = expected(before, scope, act.__name__, only_affected)
    after = {row.id: row for row in await everything(store)}
    for row in before:
        status = wanted[row.id]
        assert after.get(row.id) == (None if status is None else replace(row, status=status))
    moves = Counter((row.status, wanted[row.id]) for row in before if wanted[row.id] is not row.status)
    match done:
        case Upgrade():
            counts = (moves[PENDING, CURRENT], moves[CURRENT, ARCHIVED], moves[ARCHIVED, None])
            assert (done.promoted, done.archived, done.deleted) == counts
        case Downgrade():
            assert (done.restored, done.demoted) == (moves[ARCHIVED, CURRENT], moves[CURRENT, ARCHIVED])
    assert await everything(elsewhere) == theirs
