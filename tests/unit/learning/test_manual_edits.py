"""Learnings by hand: who edits, and what is archived and restored."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reflexio.errors import Conflict, NotFound
from reflexio.learning import manual_edits
from reflexio.models.learning import Kind, Learning, Status
from reflexio.models.profile import UpdateUserProfileRequest
from reflexio.ports.clock import SystemClock
from reflexio.ports.storage import LearningFilter, LineageEvent, Store
from reflexio.providers.scripted import ScriptedEmbedder
from reflexio.retrieval.immediate import ImmediateEmbedder
from reflexio.storage.sqlite import open_sqlite

CLOCK = SystemClock()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    database = open_sqlite(tmp_path / "reflexio.db")
    yield database.of("org")
    await database.close()


async def add(store: Store, status: Status = Status.CURRENT) -> LearningFilter:
    row = Learning(Kind.USER_PLAYBOOK, "Ask first.", user_id="ann", status=status)
    (number,) = await store.write(lambda tx: tx.learnings.add([row]))
    return LearningFilter(Kind.USER_PLAYBOOK, ids=(number,), statuses=None)


async def status(store: Store, where: LearningFilter) -> Status:
    row = await store.read(lambda tx: tx.learnings.get(where))
    assert row
    return row.status


async def events(store: Store, where: LearningFilter) -> list[LineageEvent]:
    (number,) = where.ids or ()
    return await store.read(lambda tx: tx.learnings.lineage(number))


async def test_an_archived_learning_is_kept_and_comes_back(store: Store) -> None:
    where = await add(store)
    await manual_edits.archive(store, CLOCK, where, actor="eve", reason="outdated")
    assert await status(store, where) is Status.ARCHIVED
    await manual_edits.restore(store, CLOCK, where, actor="bo")
    assert await status(store, where) is Status.CURRENT
    noted = [
        (event.op, event.actor, event.reason, event.from_status, event.to_status)
        for event in await events(store, where)
    ]
    assert noted == [
        ("archived", "eve", "outdated", "current", "archived"),
        ("restored", "bo", "", "archived", "current"),
    ]


@pytest.mark.parametrize("retired", [Status.ARCHIVED, Status.MERGED, Status.SUPERSEDED, Status.EXPIRED])
async def test_what_is_not_in_use_cannot_be_archived(store: Store, retired: Status) -> None:
    where = await add(store, retired)
    with pytest.raises(Conflict, match=retired.value):
        await manual_edits.archive(store, CLOCK, where)
    assert await events(store, where) == []


@pytest.mark.parametrize("other", [Status.CURRENT, Status.PENDING, Status.MERGED, Status.SUPERSEDED])
async def test_only_what_was_archived_can_be_restored(store: Store, other: Status) -> None:
    where = await add(store, other)
    with pytest.raises(Conflict, match=other.value):
        await manual_edits.restore(store, CLOCK, where)
    assert await status(store, where) is other


async def test_an_unknown_learning_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound):
        await manual_edits.archive(store, CLOCK, LearningFilter(Kind.USER_PLAYBOOK, ids=(999,)))


async def test_an_edit_tells_who_and_why(store: Store) -> None:
    where, embedder = await add(store), ImmediateEmbedder(ScriptedEmbedder())
    changes = {"content": "Ask twice."}
    await manual_edits.update(store, CLOCK, embedder, where, changes, actor="eve", reason="clearer")
    assert [(event.op, event.actor, event.reason) for event in await events(store, where)] == [
        ("edited", "eve", "clearer")
    ]


async def test_an_edit_of_a_profile_tells_who(store: Store) -> None:
    (number,) = await store.write(
        lambda tx: tx.learnings.add([Learning(Kind.PROFILE, "Vegan.", key="p", user_id="ann")])
    )
    request = UpdateUserProfileRequest(profile_id="p", user_id="ann", content="Vegetarian.")
    await manual_edits.update_profile(store, CLOCK, ImmediateEmbedder(ScriptedEmbedder()), request, actor="eve")
    (event,) = await store.read(lambda tx: tx.learnings.lineage(number))
    assert (event.op, event.actor, event.details["wording"]["content"]) == ("edited", "eve", "Vegan.")
