"""Who leaves leaves no window behind, and what is left of a cluster is written anew."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reflexio.aggregation import review
from reflexio.aggregation.withdraw import withdraw_user
from reflexio.interactions import erase
from reflexio.models.learning import Kind, Learning, PlaybookStatus, Status
from reflexio.models.playbook import UpdatePlaybookStatusRequest
from reflexio.ports.storage import LearningFilter, Tx
from reflexio.retrieval.filters import all_pages
from reflexio.storage.sqlite import open_sqlite
from tests.builders import request, said
from tests.unit.aggregation.aggregation_setup import PARCEL, House, told


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    database = open_sqlite(tmp_path / "reflexio.db")
    made = House(database)
    await made.configure()
    await made.teach(*[PARCEL] * 4)
    await made.run()
    try:
        yield made
    finally:
        await made.work.close()
        await database.close()


async def all_of_them(house: House) -> list[Learning]:
    where = LearningFilter(Kind.AGENT_PLAYBOOK, statuses=None)
    return await house.store.read(lambda tx: list(all_pages(tx, where)))


def owners(row: Learning) -> list[int]:
    return [each["source_interaction_ids"][0] for each in row.details["source_windows"]]


async def test_no_playbook_new_or_retired_keeps_a_window_of_who_left(house: House) -> None:
    await house.teach(PARCEL, first=10)
    await house.run()
    await erase.delete_user(house.store, house.clock, "u2", withdraw_user)
    assert {row.status: (owners(row), row.details["support"]) for row in await all_of_them(house)} == {
        Status.SUPERSEDED: ([1, 3, 4], 3),
        Status.CURRENT: ([1, 3, 4, 10], 4),
    }


async def test_what_is_left_is_written_anew_without_being_asked(house: House) -> None:
    await erase.delete_user(house.store, house.clock, "u2", withdraw_user)
    await house.look()
    assert told(await house.made()) == [f"{PARCEL} (3)"]
    assert house.writer.read[-1].count == 3
    assert await house.look() == 0


async def test_an_approved_playbook_stays_and_gets_a_successor(house: House) -> None:
    (approved,) = await house.made()
    asked = UpdatePlaybookStatusRequest(agent_playbook_id=approved.id, playbook_status=PlaybookStatus.APPROVED)
    await review.decide(house.store, house.clock, asked)
    await erase.delete_user(house.store, house.clock, "u2", withdraw_user)
    await house.look()
    stays, successor = await house.made()
    assert (stays.content, stays.review, owners(stays)) == (approved.content, PlaybookStatus.APPROVED, [1, 3, 4])
    assert successor.details["replaces"] == [stays.id]


async def test_those_that_too_few_stand_behind_are_withdrawn_only_if_wished(house: House) -> None:
    await house.configure(min_cluster_size=3)
    for user in ("u1", "u2"):
        done = await erase.delete_user(house.store, house.clock, user, withdraw_user)
        assert done.withdrawn_agent_playbooks == 0
    assert len(await house.made()) == 1
    done = await erase.delete_user(house.store, house.clock, "u3", withdraw_user, withdraw_unsupported=True)
    assert done.withdrawn_agent_playbooks == 1
    (row,) = await all_of_them(house)
    assert row.status is Status.ARCHIVED
    events = await house.store.read(lambda tx: tx.learnings.lineage(row.id))
    assert (events[-1].op, events[-1].reason) == ("withdrawn", "fewer than 3 users support it")
    await house.look()
    assert await house.made() == []


async def test_turns_of_who_left_go_also_from_windows_of_others(house: House) -> None:
    asked = request(user_id="ann")

    def publish(tx: Tx) -> None:
        tx.requests.add(asked)
        tx.interactions.add(asked, said("hello"))

    await house.store.write(publish)
    (turn,) = await house.store.read(lambda tx: tx.interactions.of_requests([asked.request_id]))
    windows = [
        {"user_playbook_id": 900, "source_interaction_ids": [turn.interaction_id]},
        {"user_playbook_id": 901, "source_interaction_ids": [turn.interaction_id, 77]},
    ]
    row = Learning(Kind.AGENT_PLAYBOOK, "by hand", details={"source_windows": windows, "source_span": "hello"})
    (number,) = await house.store.write(lambda tx: tx.learnings.add([row]))
    await erase.delete_user(house.store, house.clock, "ann", withdraw_user)
    (left,) = (await house.store.read(lambda tx: tx.learnings.many([number]))).values()
    assert left.details["source_windows"] == [{"user_playbook_id": 901, "source_interaction_ids": [77]}]
    assert "source_span" not in left.details


async def test_who_had_no_part_changes_nothing(house: House) -> None:
    before = await all_of_them(house)
    await erase.delete_user(house.store, house.clock, "stranger", withdraw_user, withdraw_unsupported=True)
    assert await all_of_them(house) == before
    assert await house.look() == 0
