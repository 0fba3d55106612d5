"""Aggregation in steps: only what changed reaches the learner, failures stay alone, and what is approved stays."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reflexio.aggregation import review
from reflexio.aggregation.cluster_identity import MOST_ATTEMPTS
from reflexio.aggregation.scheduler import LONGEST_WAIT, QUIET_SECONDS
from reflexio.aggregation.service import AUTOMATIC_SERVICE, SERVICE
from reflexio.errors import Conflict, ProviderRefused, ProviderUnavailable, UnreadableAnswer
from reflexio.jobs import operations
from reflexio.learning import stall
from reflexio.models.learning import PlaybookStatus, Status
from reflexio.models.operation import OperationStatus
from reflexio.models.playbook import UpdatePlaybookStatusRequest
from reflexio.organisations import configuration
from reflexio.ports.storage import Store
from reflexio.providers.scripted import ScriptedEmbedder
from reflexio.storage.sqlite import open_sqlite
from tests.unit.aggregation.aggregation_setup import INVOICE, PARCEL, House, told

APPROVED, PENDING, REJECTED = PlaybookStatus.APPROVED, PlaybookStatus.PENDING, PlaybookStatus.REJECTED
UNREADABLE = UnreadableAnswer("not JSON")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    database = open_sqlite(tmp_path / "reflexio.db")
    made = House(database)
    await made.configure()
    try:
        yield made
    finally:
        if hasattr(made, "work"):
            await made.work.close()
        await database.close()


async def decide(house: House, number: int, decision: PlaybookStatus) -> None:
    asked = UpdatePlaybookStatusRequest(agent_playbook_id=number, playbook_status=decision, reviewer="eve")
    await review.decide(house.store, house.clock, asked)


async def test_what_many_users_taught_becomes_one_pending_playbook(house: House) -> None:
    ids = await house.teach(PARCEL, PARCEL, PARCEL, INVOICE)
    ended = await house.run()
    (made,) = await house.made()
    assert made.content == f"{PARCEL} (3)"
    assert (made.review, made.status, made.agent_version, made.name) == (PENDING, Status.CURRENT, "v1", "playbook")
    assert made.details["support"] == 3
    assert made.details["source_windows"] == [
        {"user_playbook_id": number, "source_interaction_ids": [place, place + 1000]}
        for place, number in enumerate(ids[:3], start=1)
    ], "whole windows, not only what was quoted"
    assert ended.status is OperationStatus.COMPLETED
    assert ended.stats == {"user_playbooks_processed": 4, "clusters_found": 1, "total_generated": 1}


async def test_a_new_agent_playbook_has_its_vector_when_it_can_be_searched(house: House) -> None:
    await house.teach(PARCEL, PARCEL, PARCEL)
    await house.run()
    (made,) = await house.made()
    vectors = await house.store.read(lambda tx: tx.learnings.vectors([made.id], ScriptedEmbedder().name))
    assert list(vectors) == [made.id]


async def test_what_did_not_change_costs_nothing(house: House) -> None:
    await house.teach(*[PARCEL] * 3, *[INVOICE] * 3)
    await house.run()
    again = await house.run()
    assert len(house.writer.read) == 2
    assert again.stats["clusters_found"] == 2
    assert again.stats["total_generated"] == 0


async def test_only_the_cluster_that_changed_reaches_the_learner(house: House) -> None:
    await house.teach(*[PARCEL] * 3, *[INVOICE] * 3)
    await house.run()
    await house.teach(PARCEL, first=10)
    await house.run()
    assert [each.members[0].content for each in house.writer.read] == [PARCEL, INVOICE, PARCEL]
    assert sorted(told(await house.made())) == [f"{PARCEL} (4)", f"{INVOICE} (3)"]
    (old,) = await house.made(statuses={"statuses": (Status.SUPERSEDED,)})
    assert old.details["superseded_by"] == str(max(row.id for row in await house.made()))


async def test_an_approved_playbook_stays_until_its_successor_is_approved(house: House) -> None:
    await house.teach(*[PARCEL] * 3)
    await house.run()
    (approved,) = await house.made()
    await decide(house, approved.id, APPROVED)
    for first in (10, 20):
        await house.teach(PARCEL, first=first)
        await house.run()
    stands, successor = await house.made()
    assert (stands.id, stands.review, stands.content) == (approved.id, APPROVED, approved.content)
    assert (successor.review, successor.details["replaces"]) == (PENDING, [approved.id])
    assert house.writer.read[-1].before is not None
    await decide(house, successor.id, APPROVED)
    assert [row.id for row in await house.made()] == [successor.id]
    (old,) = await house.made(APPROVED, statuses={"statuses": (Status.SUPERSEDED,)})
    assert old.id == approved.id


async def test_what_a_person_rejected_is_not_proposed_again_until_twice_as_many_say_it(house: House) -> None:
    await house.teach(*[PARCEL] * 3)
    await house.run()
    (rejected,) = await house.made()
    await decide(house, rejected.id, REJECTED)
    await house.teach(PARCEL, PARCEL, first=10)
    await house.run()
    assert len(house.writer.read) == 1
    await house.teach(PARCEL, first=20)
    await house.run()
    assert len(house.writer.read) == 2
    assert told(await house.made(PENDING)) == [f"{PARCEL} (6)"]


async def test_a_learner_that_finds_it_said_already_leaves_what_stands(house: House) -> None:
    await house.teach(*[PARCEL] * 3)
    await house.run()
    house.writer.answers = [None]
    await house.teach(PARCEL, first=10)
    ended = await house.run()
    (row,) = await house.made()
    assert ended.stats["total_generated"] == 0
    assert (row.content, row.details["support"]) == (f"{PARCEL} (3)", 4)
    await house.run()
    assert len(house.writer.read) == 2, "and is not asked again"


async def test_the_learner_reads_each_advice_twice_at_the_most_and_of_two_users(house: House) -> None:
    await house.teach(*[PARCEL] * 4)
    await house.run()
    (read,) = house.writer.read
    assert [each.content for each in read.members] == [PARCEL] * 2
    assert len({each.user_id for each in read.members}) == 2


async def test_the_learner_is_shown_what_stands_near(house: House) -> None:
    await house.teach(*[PARCEL] * 3)
    await house.run()
    await house.teach("Ask the neighbours about the letter.", "Ask neighbours about the letter today.", first=10)
    await house.configure(clustering_similarity=0.95, min_cluster_size=1)
    house.writer.answers = [None] * 9
    await house.run()
    assert any(f"{PARCEL} (3)" in told(each.known) for each in house.writer.read[1:])


async def test_the_size_and_the_name_of_a_type_are_honoured(house: House) -> None:
    await house.configure("pain_points", min_cluster_size=4)
    await house.teach(*[PARCEL] * 3, name="pain_points")
    await house.teach(*[INVOICE] * 3, name="other", first=10)
    assert (await house.run("pain_points")).stats["clusters_found"] == 0
    ended = await house.run()
    assert ended.stats == {"user_playbooks_processed": 6, "clusters_found": 1, "total_generated": 1}
    assert [row.name for row in await house.made()] == ["other"]


async def test_nothing_stored_is_an_answer_too(house: House) -> None:
    ended = await house.run()
    assert ended.status is OperationStatus.COMPLETED
    assert ended.stats == {"user_playbooks_processed": 0, "clusters_found": 0, "total_generated": 0}


async def test_a_cluster_that_fails_leaves_the_others_and_is_tried_again(house: House) -> None:
    await house.teach(*[PARCEL] * 3, *[INVOICE] * 3)
    house.writer.failures = {"Ask": [UNREADABLE] * 3}
    ended = await house.run()
    assert ended.status is OperationStatus.COMPLETED
    assert (ended.processed_users, ended.failed_users) == (1, 1)
    assert told(await house.made()) == [f"{INVOICE} (3)"]
    shown = await house.store.read(lambda tx: operations.describe(tx, ended, 1000))
    assert [each.error for each in shown.failed_user_ids] == [str(UNREADABLE)]
    assert house.pauses == [2.0, 4.0]
    house.clock.at += 600
    assert await house.look() == 1
    assert len(await house.made()) == 2
    assert await house.look() == 0


async def test_a_cluster_that_always_fails_is_given_up_until_somebody_asks(house: House) -> None:
    await house.teach(*[PARCEL] * 3)
    house.writer.failures = {"Ask": [UNREADABLE] * 100}
    await house.run()
    for _ in range(MOST_ATTEMPTS + 3):
        house.clock.at += 600
        await house.look()
    assert len(house.writer.read) == 3 * MOST_ATTEMPTS
    house.writer.failures = {}
    await house.run()
    assert len(await house.made()) == 1


async def test_an_outage_is_no_fault_of_a_cluster(house: House) -> None:
    await house.teach(*[PARCEL] * 3)
    house.writer.failures = {"Ask": [*[ProviderUnavailable()] * 3 * (MOST_ATTEMPTS + 2)]}
    await house.run()
    for _ in range(MOST_ATTEMPTS + 3):
        house.clock.at += 600
        await house.look()
    assert len(await house.made()) == 1


async def test_a_refusal_stalls_and_goes_on_when_the_provider_works(house: House) -> None:
    await house.teach(*[PARCEL] * 3, *[INVOICE] * 3)
    house.writer.failures = {"Ask": [ProviderRefused("no credit", reason="billing")]}
    ended = await house.run()
    assert ended.status is OperationStatus.FAILED
    assert "no credit" in ended.error
    assert (await house.store.read(stall.state)) is not None
    assert len(house.writer.read) == 1, "the others are not tried"
    house.clock.at += 60
    await house.look()
    assert len(await house.made()) == 2
    assert await house.store.read(stall.state) is None


async def test_spend_is_written_down_and_the_budget_minded(house: House) -> None:
    await configuration.change(house.store, house.clock, {"daily_token_budget": 15})
    await house.teach(*[PARCEL] * 3, *[INVOICE] * 3, *["Speak of trains only."] * 3)
    ended = await house.run()
    assert ended.status is OperationStatus.FAILED
    assert "budget" in ended.error
    assert len(house.writer.read) == 2
    with pytest.raises(Conflict, match="budget"):
        await house.run()
    house.clock.at += 600
    assert await house.look() == 0
    house.clock.at += 86_400
    await house.look()
    assert len(await house.made()) == 3


async def test_a_run_keeps_to_the_configuration_it_began_with(house: House) -> None:
    await house.teach(*[PARCEL] * 3, *[INVOICE] * 3)
    await house.start()
    plain = house.writer.summarise

    async def meddling(gathered: object, config: object) -> object:
        await house.configure(min_cluster_size=50)
        return await plain(gathered, config)  # type: ignore[arg-type]

    house.writer.summarise = meddling  # type: ignore[method-assign, assignment]
    await house.run()
    assert len(await house.made()) == 2
    assert {each.playbook_configs[0].playbook_aggregator_config.min_cluster_size for each in house.writer.configs} == {
        2
    }


async def test_a_second_run_at_the_same_time_is_told_of_the_first(house: House) -> None:
    await house.teach(*[PARCEL] * 3)
    house.writer.stand_still = True
    await house.start()
    first = await house.aggregations.begin(house.store, "v1", lambda _: None, {})
    await house.writer.reached.wait()
    with pytest.raises(Conflict, match=first.operation_id):
        await house.aggregations.begin(house.store, "v1", lambda _: None, {})
    seen = await house.aggregations.wait(house.store, first, 0.01)
    assert (seen.status, seen.stats["clusters_found"]) == (OperationStatus.IN_PROGRESS, 1)


async def test_a_run_that_somebody_stops_ends_after_the_cluster_at_hand(house: House) -> None:
    await house.teach(*[PARCEL] * 3, *[INVOICE] * 3)
    worker = await house.start()

    async def stop(store: Store, numbers: object) -> None:
        await store.write(lambda tx: operations.cancel(tx, SERVICE, 1000))

    worker.on_added.append(stop)
    ended = await house.run()
    assert ended.status is OperationStatus.CANCELLED
    assert len(await house.made()) == 1
    worker.on_added.clear()
    await house.run()
    assert len(await house.made()) == 2


async def test_after_a_crash_what_was_written_is_not_written_again(house: House) -> None:
    await house.teach(*[PARCEL] * 3, *[INVOICE] * 3)
    worker = await house.start()
    stopped = asyncio.Event()

    async def die(store: Store, numbers: object) -> None:
        stopped.set()
        await asyncio.Event().wait()

    worker.on_added.append(die)
    run = await house.aggregations.begin(house.store, "v1", lambda _: None, {})
    await stopped.wait()
    await house.work.close()
    heard: list[int] = []

    async def hear(store: Store, numbers: list[int]) -> None:
        heard.extend(numbers)

    worker = await house.start()
    worker.on_added.append(hear)  # type: ignore[arg-type]
    ended = await house.aggregations.wait(house.store, run)
    assert ended.stats["total_generated"] == 2
    assert len(house.writer.read) == 2
    assert sorted(heard) == [row.id for row in await house.made()]


async def test_whoever_wants_to_know_is_told_of_new_playbooks(house: House) -> None:
    heard: list[tuple[str, list[int]]] = []

    async def hear(store: Store, numbers: list[int]) -> None:
        heard.append((store.org_id, numbers))

    (await house.start()).on_added.append(hear)  # type: ignore[arg-type]
    await house.teach(*[PARCEL] * 3)
    await house.run()
    assert heard == [("org", [row.id for row in await house.made()])]


async def test_what_was_erased_while_a_model_read_it_is_not_written(house: House) -> None:
    ids = await house.teach(*[f"{PARCEL} {each}" for each in ("Please.", "Thanks.", "Now.")])
    from reflexio.models.learning import Kind
    from reflexio.ports.storage import LearningFilter

    plain = house.writer.summarise

    async def erasing(gathered: object, config: object) -> object:
        where = LearningFilter(Kind.USER_PLAYBOOK, ids=(ids[0],))
        await house.store.write(lambda tx: tx.learnings.remove(where))
        house.writer.summarise = plain  # type: ignore[method-assign]
        return await plain(gathered, config)  # type: ignore[arg-type]

    await house.start()
    house.writer.summarise = erasing  # type: ignore[method-assign, assignment]
    await house.run()
    assert await house.made() == []
    house.clock.at += 600
    await house.look()
    (made,) = await house.made()
    assert [each["user_playbook_id"] for each in made.details["source_windows"]] == ids[1:]


async def test_a_deleted_playbook_comes_back_when_somebody_asks_for_all(house: House) -> None:
    from reflexio.models.learning import Kind
    from reflexio.ports.storage import LearningFilter

    await house.teach(*[PARCEL] * 3)
    await house.run()
    await house.store.write(lambda tx: tx.learnings.remove(LearningFilter(Kind.AGENT_PLAYBOOK)))
    await house.run()
    assert len(await house.made()) == 1


async def test_clusters_that_merge_have_one_successor(house: House) -> None:
    await house.configure(clustering_similarity=0.9)
    near = "Ask the neighbours about the letter."
    await house.teach(*[PARCEL] * 3, *[near] * 2)
    await house.run()
    _, second = await house.made()
    await decide(house, second.id, APPROVED)
    await house.configure(clustering_similarity=0.5)
    await house.run()
    stands, successor = await house.made()
    assert stands.id == second.id
    assert successor.content.endswith("(5)")
    assert successor.details["replaces"] == [second.id]


@pytest.mark.parametrize("content", ["   ", "x" * 90_000, "先问邻居再退款。", "Спросите соседей о посылке.", "1"])
async def test_any_text_at_all_can_be_aggregated(house: House, content: str) -> None:
    await house.teach(*[content] * 3, *[INVOICE] * 3)
    ended = await house.run()
    assert ended.status is OperationStatus.COMPLETED
    assert len(await house.made()) == (2 if content.strip() else 1)


async def test_it_begins_by_itself_when_enough_is_new_and_quiet(house: House) -> None:
    await house.configure(reaggregation_trigger_count=3)
    await house.teach(PARCEL, PARCEL, news=True)
    house.clock.at += QUIET_SECONDS
    assert await house.look() == 0, "two are not enough"
    await house.teach(PARCEL, first=10, news=True)
    assert await house.look() == 0, "others may be about to teach the same"
    house.clock.at += QUIET_SECONDS
    assert await house.look() == 1
    (made,) = await house.made()
    assert made.details["support"] == 3
    assert len(made.details["source_windows"]) == 3
    assert await house.look() == 0
    (told_of,) = [await house.store.read(lambda tx: operations.latest(tx, AUTOMATIC_SERVICE))]
    assert told_of is not None
    assert told_of.status is OperationStatus.COMPLETED


async def test_a_pool_that_is_never_quiet_has_its_turn(house: House) -> None:
    await house.teach(PARCEL, news=True)
    for second in range(LONGEST_WAIT):
        house.clock.at += 1
        await house.teach(PARCEL, first=second + 10, news=True)
    assert await house.look() == 1


async def test_new_ones_join_and_only_their_cluster_is_written(house: House) -> None:
    await house.teach(*[PARCEL] * 4, *[INVOICE] * 4)
    await house.run()
    await house.teach(INVOICE, "Speak of trains only.", first=20, news=True)
    house.clock.at += QUIET_SECONDS
    await house.look()
    assert [each.members[0].content for each in house.writer.read] == [PARCEL, INVOICE, INVOICE]
    await house.teach("Speak of trains only.", first=30, news=True)
    await house.teach("Colours are never named.", first=40, news=True)
    house.clock.at += QUIET_SECONDS
    await house.look()
    assert house.writer.read[-1].count == 2
    assert len(await house.made()) == 3


async def test_a_new_voice_against_a_cluster_joins_those_who_say_the_same(house: House) -> None:
    yes, no = "Ask for the order number.", "Do not ask for the order number."
    await house.teach(*[yes] * 8)
    await house.run()
    for first in (20, 30):
        await house.teach(no, "Speak of trains only." if first == 20 else "Never of ships.", first=first, news=True)
        house.clock.at += QUIET_SECONDS
        await house.look()
    assert sorted(told(await house.made())) == [f"{yes} (8)", f"{no} (2)"]
