"""One user is not everybody: how many users and statements it takes, in runs of both kinds and after somebody left."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reflexio.aggregation import review
from reflexio.aggregation.withdraw import withdraw_user
from reflexio.interactions import erase
from reflexio.models.learning import Kind, Learning, PlaybookStatus, Status
from reflexio.models.playbook import UpdatePlaybookStatusRequest
from reflexio.ports.storage import LearningFilter, LineageEvent, Tx
from reflexio.storage.sqlite import open_sqlite
from tests.builders import request
from tests.unit.aggregation.aggregation_setup import PARCEL, House

AGAIN, MORE = (
    "Please ask the neighbours about the parcel!",
    "Ask the neighbours about the parcel and take a photo of it.",
)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    database = open_sqlite(tmp_path / "reflexio.db")
    made = House(database)
    await made.configure()
    await made.start()
    try:
        yield made
    finally:
        await made.work.close()
        await database.close()


async def status_of(house: House, number: int) -> tuple[Status, list[LineageEvent]]:
    where = LearningFilter(Kind.AGENT_PLAYBOOK, ids=(number,), statuses=None)
    row = await house.store.read(lambda tx: tx.learnings.get(where))
    assert row is not None
    return row.status, await house.store.read(lambda tx: tx.learnings.lineage(number))


async def test_what_one_user_says_twice_counts_once(house: House) -> None:
    await house.teach(PARCEL, AGAIN, PARCEL, user="ann")
    operation = await house.run()
    assert await house.made() == []
    assert operation.stats["clusters_found"] == 0
    await house.teach(PARCEL, user="bo")
    await house.run()
    (made,) = await house.made()
    assert (made.details["support"], made.details["statements"]) == (2, 2)


async def test_one_user_who_says_two_things_can_propose_a_rule(house: House) -> None:
    await house.teach(PARCEL, MORE, user="ann")
    await house.run()
    (made,) = await house.made()
    assert made.details["support"] == 1
    (event,) = (await status_of(house, made.id))[1]
    assert event.reason == "made of 2 playbooks, taught by one user"


async def test_two_things_of_one_session_count_once(house: House) -> None:
    async def say(content: str, session: str) -> None:
        publish = request(user_id="ann", session_id=session)
        row = Learning(
            Kind.USER_PLAYBOOK,
            content,
            user_id="ann",
            agent_version="v1",
            name="playbook",
            request_id=publish.request_id,
        )

        def add(tx: Tx) -> None:
            tx.requests.add(publish)
            tx.learnings.add([row])

        await house.store.write(add)

    await say(PARCEL, "morning")
    await say(MORE, "morning")
    await house.run()
    assert await house.made() == []
    await say(MORE, "evening")
    await house.run()
    assert len(await house.made()) == 1


async def test_an_automatic_run_waits_for_as_many_users_as_are_asked_for(house: House) -> None:
    await house.configure(min_distinct_users=2)
    await house.teach(PARCEL, MORE, user="ann", news=True)
    house.clock.at += 10
    assert await house.look() == 1
    assert await house.made() == []
    await house.teach(PARCEL, MORE, user="bo", news=True)
    house.clock.at += 10
    assert await house.look() == 1
    (made,) = await house.made()
    assert made.details["support"] == 2


async def test_fewer_asked_for_later_is_enough_without_a_new_member(house: House) -> None:
    await house.configure(min_distinct_users=3)
    await house.teach(PARCEL, MORE, user="ann")
    await house.run()
    assert await house.made() == []
    await house.configure(min_distinct_users=1)
    await house.teach("Send every invoice as a file.", "Never send an invoice by post.", first=50, news=True)
    house.clock.at += 10
    await house.look()
    assert [row.details["support"] for row in await house.made()] == [1]


async def test_a_pending_rule_goes_when_too_few_are_left(house: House) -> None:
    await house.configure(min_distinct_users=3)
    await house.teach(PARCEL, PARCEL, PARCEL, PARCEL)
    await house.run()
    (made,) = await house.made()
    assert (await erase.delete_user(house.store, house.clock, "u1", withdraw_user)).withdrawn_agent_playbooks == 0
    assert (await erase.delete_user(house.store, house.clock, "u2", withdraw_user)).withdrawn_agent_playbooks == 1
    status, events = await status_of(house, made.id)
    assert (status, events[-1].reason) == (Status.ARCHIVED, "fewer than 3 users support it")
    await house.look()
    assert await house.made() == []


async def test_what_a_person_approved_stays_unless_told_otherwise(house: House) -> None:
    await house.configure(min_distinct_users=2)
    await house.teach(PARCEL, PARCEL)
    await house.run()
    (made,) = await house.made()
    asked = UpdatePlaybookStatusRequest(agent_playbook_id=made.id, playbook_status=PlaybookStatus.APPROVED)
    await review.decide(house.store, house.clock, asked)
    done = await erase.delete_user(house.store, house.clock, "u1", withdraw_user)
    assert done.withdrawn_agent_playbooks == 0
    done = await erase.delete_user(house.store, house.clock, "u2", withdraw_user, withdraw_unsupported=True)
    assert done.withdrawn_agent_playbooks == 1


async def test_the_last_user_takes_a_pending_rule_along(house: House) -> None:
    await house.teach(PARCEL, MORE, user="ann")
    await house.run()
    (made,) = await house.made()
    done = await erase.delete_user(house.store, house.clock, "ann", withdraw_user)
    assert done.withdrawn_agent_playbooks == 1
    # The wording was hers alone.
    assert await house.store.read(lambda tx: (tx.learnings.many([made.id]), tx.learnings.lineage(made.id))) == ({}, [])


async def test_repetition_does_not_bring_a_rejected_rule_back(house: House) -> None:
    await house.teach(PARCEL, PARCEL)
    await house.run()
    (made,) = await house.made()
    asked = UpdatePlaybookStatusRequest(agent_playbook_id=made.id, playbook_status=PlaybookStatus.REJECTED)
    await review.decide(house.store, house.clock, asked)
    await house.teach(*[PARCEL] * 6, user="u1")
    await house.run()
    assert len(await house.made()) == 1
    await house.teach(PARCEL, PARCEL, first=20)
    await house.run()
    assert len(await house.made()) == 2
