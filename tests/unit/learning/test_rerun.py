"""A rerun in steps: what fails is told and tried again, what is finished is not, and a draft replaces a draft."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from reflexio.aggregation.withdraw import withdraw_user
from reflexio.engine.job_runner import DurableWork
from reflexio.engine.memory import MemoryJournal
from reflexio.errors import Conflict, NotFound, ProviderRefused, ProviderUnavailable, UnreadableAnswer
from reflexio.interactions import erase
from reflexio.jobs import operations
from reflexio.learning.rerun import RerunWorker
from reflexio.learning.scheduler import LearningScheduler
from reflexio.learning.service import NO_TURNS, LearningService
from reflexio.learning.stall import StallMonitor
from reflexio.learning.worker import LearnerSetup, LearningWorker
from reflexio.models.config import Config
from reflexio.models.extraction import (
    ClusterToSummarise,
    Consolidation,
    Decision,
    ExtractedLearning,
    Extraction,
    Neighbourhood,
    Quote,
    Spend,
    Summary,
    Window,
)
from reflexio.models.learning import Kind, Learning, Status
from reflexio.models.operation import OperationStatus, OperationStatusInfo
from reflexio.models.paging import Page
from reflexio.organisations.configuration import stored_config
from reflexio.ports.storage import Database, LearningFilter, Store, TurnScope, Tx
from reflexio.providers.scripted import ScriptedEmbedder
from reflexio.retrieval.scope import ScopeClassifier
from reflexio.storage.sqlite import open_sqlite
from tests.builders import request, said

EVERYBODY = TurnScope()


class Clock:
    def now(self) -> int:
        return 1000


@dataclass
class Scripted:
    """Learns every new turn as it stands. `failures` are raised by the windows that begin with their words."""

    failures: dict[str, list[Exception]] = field(default_factory=dict)
    decisions: dict[str, Decision] = field(default_factory=dict)
    windows: list[tuple[str, ...]] = field(default_factory=list)
    contexts: list[tuple[str, ...]] = field(default_factory=list)
    asked: list[Neighbourhood] = field(default_factory=list)
    unread: tuple[str, ...] = ()
    stand_still: str = ""
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    name = "scripted"
    fingerprint = "f"

    async def check(self) -> Spend:
        return Spend()

    async def extract(self, window: Window, config: Config, kinds: frozenset[Kind]) -> Extraction:
        new = [turn for turn in window.turns if turn.is_new]
        self.windows.append(tuple(turn.content for turn in new))
        self.contexts.append(tuple(turn.content for turn in window.turns if not turn.is_new))
        if self.stand_still and new[0].content == self.stand_still:
            self.reached.set()
            await asyncio.Event().wait()
        if left := self.failures.get(new[0].content):
            raise left.pop(0)
        (kind,) = kinds
        found = [ExtractedLearning(kind, "x", turn.content, evidence=(Quote(turn.id, turn.content),)) for turn in new]
        unread = tuple(turn.id for turn in new if turn.content in self.unread)
        return Extraction(tuple(found), Spend("scripted", 1, 10, 1), unread=unread)

    async def summarise(self, gathered: ClusterToSummarise, config: Config) -> Summary:
        return Summary()

    async def consolidate(self, questions: Sequence[Neighbourhood], config: Config) -> Consolidation:
        self.asked += questions
        return Consolidation(tuple(self.decisions.get(each.candidate.content, Decision("add")) for each in questions))


@dataclass
class House:
    """A database, a learner, and an engine that can die and come again."""

    database: Database
    learner: Scripted
    pauses: list[float] = field(default_factory=list)
    memory: MemoryJournal = field(default_factory=MemoryJournal)

    async def start(self) -> RerunWorker:
        clock = Clock()
        embedder, stalls = ScriptedEmbedder(dimensions=4096), StallMonitor(clock)
        setup = LearnerSetup(self.learner, embedder, clock, ScopeClassifier(embedder))
        self.work = DurableWork(self.memory)
        LearningWorker(self.database, clock, lambda _: setup, stalls).register(self.work)
        self.service = LearningService(self.work, clock, LearningScheduler(self.database, self.work, clock, stalls))

        async def pause(seconds: float) -> None:
            self.pauses.append(seconds)

        reruns = RerunWorker(self.database, self.work, clock, lambda _: setup, stalls, pause)
        reruns.register()
        await self.work.start()
        return reruns

    @property
    def store(self) -> Store:
        return self.database.of("default")

    async def tell(self, user: str, *words: str, **changes: str) -> None:
        asked = request(**changes, user_id=user)

        def put(tx: Tx) -> None:
            tx.requests.add(asked)
            tx.interactions.add(asked, said(*words))

        await self.store.write(put)

    async def run(self, scope: TurnScope = EVERYBODY, kind: Kind = Kind.PROFILE) -> OperationStatusInfo:
        reruns = await self.start()
        made = await reruns.begin(self.store, kind, scope, {})
        return await self.ended(made)

    async def ended(self, operation_id: str) -> OperationStatusInfo:
        await self.work.wait(f"rerun:default:{operation_id}")

        def look(tx: Tx) -> OperationStatusInfo:
            return operations.describe(tx, operations.get(tx, operation_id), 1000)

        told: OperationStatusInfo = await self.store.read(look)
        return told

    async def rows(self, status: Status = Status.PENDING, kind: Kind = Kind.PROFILE) -> list[Learning]:
        where = LearningFilter(kind, statuses=(status,))
        found: list[Learning] = await self.store.read(lambda tx: tx.learnings.page(where, Page(100)).rows)
        return sorted(found, key=lambda row: row.id)

    async def contents(self, status: Status = Status.PENDING, kind: Kind = Kind.PROFILE) -> list[str]:
        return [row.content for row in await self.rows(status, kind)]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    database = open_sqlite(tmp_path / "reflexio.db")
    made = House(database, Scripted())
    yield made
    await made.work.close()
    await database.close()


def words(start: int, end: int) -> tuple[str, ...]:
    """Turns that share no word, so that none is next to another."""
    return tuple(f"w{number}" for number in range(start, end))


async def test_all_turns_are_read_in_consecutive_windows(house: House) -> None:
    await house.tell("ann", *words(0, 25))
    told = await house.run()
    assert (told.status, told.stats["total_interactions_processed"]) == (OperationStatus.COMPLETED, 25)
    assert house.learner.windows == [words(0, 10), words(10, 20), words(20, 25)]
    assert house.learner.contexts == [(), (), words(15, 20)]
    assert Counter(await house.contents()) == Counter(words(0, 25))


async def test_a_rerun_of_unread_turns_reads_these_and_clears_their_marks(house: House) -> None:
    await house.tell("ann", *words(0, 4))
    await house.tell("bob", *words(4, 6))
    unlearned = await house.store.read(lambda tx: tx.interactions.unlearned("ann", 9))
    turns = [turn.turn.interaction_id for turn in unlearned]
    both = (Kind.PROFILE, Kind.USER_PLAYBOOK)
    await house.store.write(lambda tx: tx.interactions.mark_unread(turns[1:3], both))

    await house.run(TurnScope(only_unread=Kind.PROFILE))
    assert house.learner.windows == [("w1", "w2")]
    # The other kind of learnings was not looked for yet.
    assert await house.store.read(lambda tx: tx.interactions.users(TurnScope(only_unread=Kind.PROFILE))) == []
    assert await house.store.read(lambda tx: tx.interactions.count_unread()) == 2

    await house.run(TurnScope(only_unread=Kind.USER_PLAYBOOK), Kind.USER_PLAYBOOK)
    assert await house.store.read(lambda tx: tx.interactions.count_unread()) == 0


async def test_turns_that_a_rerun_does_not_understand_either_stay_marked(house: House) -> None:
    await house.tell("ann", *words(0, 2))
    house.learner.unread = ("w1",)
    await house.run()
    assert await house.store.read(lambda tx: tx.interactions.users(TurnScope(only_unread=Kind.PROFILE))) == ["ann"]


async def test_context_comes_from_within_the_filters_only(house: House) -> None:
    await house.tell("ann", "other", source="mail")
    await house.tell("ann", "mine", source="chat")
    await house.run(TurnScope(source="chat"))
    assert (house.learner.windows, house.learner.contexts) == ([("mine",)], [()])


async def test_a_rerun_consolidates_among_its_own_rows_only(house: House) -> None:
    old = Learning(Kind.PROFILE, "likes tea much", key="k", user_id="ann")
    await house.store.write(lambda tx: tx.learnings.add([old]))
    await house.tell("ann", "likes tea", *words(1, 10), "likes tea hot")
    house.learner.decisions["likes tea hot"] = Decision("merge", (1,), content="likes hot tea")
    await house.run()
    (asked,) = house.learner.asked
    assert [each.learning.content for each in asked.neighbours] == ["likes tea"]
    rows = await house.rows()
    assert [row.content for row in rows] == [*words(1, 10), "likes hot tea"]
    assert rows[-1].details["source_interaction_ids"] == [1, 11]
    assert await house.contents(Status.CURRENT) == ["likes tea much"]


@pytest.mark.parametrize(
    ("decision", "left"),
    [
        (Decision("replace", (1,)), ["likes tea hot"]),
        (Decision("drop", (1,)), ["likes tea"]),
        (Decision("forget", (1,)), []),
        (Decision("add"), ["likes tea", "likes tea hot"]),
    ],
    ids=lambda value: value.action if isinstance(value, Decision) else "",
)
async def test_a_draft_follows_the_decisions(house: House, decision: Decision, left: list[str]) -> None:
    await house.tell("ann", "likes tea", *words(1, 10), "likes tea hot")
    house.learner.decisions["likes tea hot"] = decision
    await house.run()
    assert [each for each in await house.contents() if each.startswith("likes")] == left


async def test_a_provider_that_is_away_for_a_moment_is_asked_again(house: House) -> None:
    await house.tell("ann", "one")
    house.learner.failures["one"] = [ProviderUnavailable(), UnreadableAnswer(spend=Spend("scripted", 2, 7, 1))]
    told = await house.run()
    assert (told.status, told.failed_users) == (OperationStatus.COMPLETED, 0)
    assert house.pauses == [2.0, 4.0]
    spent = (await house.store.read(lambda tx: tx.spending.since("1970-01-01")))[0]
    assert (spent.operation, spent.spend.calls) == ("rerun", 3)


async def test_a_user_who_fails_keeps_the_old_pending_rows_and_the_others_go_on(house: House) -> None:
    await house.tell("ann", "one")
    await house.tell("bob", "two")
    await house.run()
    house.learner.failures["one"] = [UnreadableAnswer("gibberish")] * 3
    before = {row.user_id: row.id for row in await house.rows()}
    told = await house.run()
    after = {row.user_id: row.id for row in await house.rows()}
    assert (told.status, told.processed_user_ids) == (OperationStatus.COMPLETED, ["bob"])
    assert [(each.user_id, "gibberish" in each.error) for each in told.failed_user_ids] == [("ann", True)]
    assert after["ann"] == before["ann"]
    assert after["bob"] != before["bob"]


async def test_a_refused_key_ends_the_rerun_and_is_told_as_a_stall(house: House) -> None:
    await house.tell("ann", "one")
    await house.tell("bob", "two")
    house.learner.failures["one"] = [ProviderRefused("401")]
    told = await house.run()
    assert (told.status, told.failed_users, told.processed_users) == (OperationStatus.FAILED, 1, 0)
    assert "401" in str(told.error_message)
    assert house.learner.windows == [("one",)]
    stall = await house.store.read(lambda tx: tx.stalls.get())
    assert stall is not None
    assert stall.reason == "auth_error"


async def test_a_used_up_budget_ends_it_and_keeps_what_is_done(house: House) -> None:
    await house.tell("ann", "one")
    await house.tell("bob", "two")
    document = (await house.store.read(stored_config)).model_copy(update={"daily_token_budget": 11}).model_dump_json()
    await house.store.write(lambda tx: tx.configs.put(document, 1))
    told = await house.run()
    assert (told.status, told.processed_user_ids) == (OperationStatus.FAILED, ["ann"])
    assert "budget" in str(told.error_message)
    assert await house.contents() == ["one"]


async def test_what_a_crash_left_goes_on_without_asking_again(house: House) -> None:
    await house.tell("ann", "one")
    await house.tell("bob", *words(0, 25))
    house.learner.stand_still = "w10"
    reruns = await house.start()
    made = await reruns.begin(house.store, Kind.PROFILE, EVERYBODY, {})
    await asyncio.wait_for(house.learner.reached.wait(), 5)
    await house.work.crash()
    house.learner.stand_still = ""
    await house.start()
    told = await house.ended(made)
    assert (told.status, told.processed_users) == (OperationStatus.COMPLETED, 2)
    assert Counter(each[0] for each in house.learner.windows) == {"one": 1, "w0": 1, "w10": 2, "w20": 1}
    assert len(await house.contents()) == 26


async def test_a_user_who_is_erased_meanwhile_stays_erased(house: House) -> None:
    await house.tell("ann", *words(0, 11))
    house.learner.stand_still = "w10"
    reruns = await house.start()
    made = await reruns.begin(house.store, Kind.PROFILE, EVERYBODY, {})
    await asyncio.wait_for(house.learner.reached.wait(), 5)
    await erase.delete_user(house.store, Clock(), "ann", withdraw_user)
    await house.work.crash()
    house.learner.stand_still = ""
    await house.start()
    told = await house.ended(made)
    assert (told.status, told.stats["total_generated"]) == (OperationStatus.COMPLETED, 0)
    assert await house.contents() == []


async def test_with_a_used_up_budget_none_is_begun(house: House) -> None:
    await house.tell("ann", "one")
    document = (await house.store.read(stored_config)).model_copy(update={"daily_token_budget": 0}).model_dump_json()
    await house.store.write(lambda tx: tx.configs.put(document, 1))
    reruns = await house.start()
    with pytest.raises(Conflict, match="budget"):
        await reruns.begin(house.store, Kind.PROFILE, EVERYBODY, {})


async def test_one_that_was_taken_for_dead_leaves_the_work_to_the_next(house: House) -> None:
    await house.tell("ann", "one")
    house.learner.stand_still = "one"
    reruns = await house.start()
    made = await reruns.begin(house.store, Kind.PROFILE, EVERYBODY, {})
    await asyncio.wait_for(house.learner.reached.wait(), 5)
    await house.work.crash()
    await house.store.write(lambda tx: operations.fail(tx, made, "abandoned", 1000))
    house.learner.stand_still = ""
    await house.start()
    told = await house.ended(made)
    assert (told.status, told.error_message) == (OperationStatus.FAILED, "abandoned")
    assert await house.contents() == []


async def test_a_second_one_waits_for_nobody_and_is_refused(house: House) -> None:
    await house.tell("ann", "one")
    house.learner.stand_still = "one"
    reruns = await house.start()
    await reruns.begin(house.store, Kind.PROFILE, EVERYBODY, {})
    for scope in (EVERYBODY, TurnScope(user_id="ann")):
        with pytest.raises(Conflict, match="already in progress"):
            await reruns.begin(house.store, Kind.PROFILE, scope, {})
    with pytest.raises(Conflict, match="already in progress"):
        await house.service.run_manually(house.store, Kind.PROFILE, EVERYBODY, {})
    assert await reruns.begin(house.store, Kind.USER_PLAYBOOK, EVERYBODY, {})
    await house.work.crash()


async def test_nobody_in_reach_is_told_and_leaves_no_operation(house: House) -> None:
    reruns = await house.start()
    with pytest.raises(NotFound, match=NO_TURNS):
        await reruns.begin(house.store, Kind.PROFILE, EVERYBODY, {})
    assert await house.store.read(lambda tx: operations.latest(tx, "profile_generation")) is None


async def test_playbooks_of_another_version_stay_pending(house: House) -> None:
    await house.tell("ann", "one", agent_version="v1")
    await house.tell("ann", "two", agent_version="v2")
    await house.run(kind=Kind.USER_PLAYBOOK)
    before = {row.agent_version: row.id for row in await house.rows(kind=Kind.USER_PLAYBOOK)}
    await house.run(TurnScope(agent_version="v1"), Kind.USER_PLAYBOOK)
    after = {row.agent_version: row.id for row in await house.rows(kind=Kind.USER_PLAYBOOK)}
    assert after["v2"] == before["v2"]
    assert after["v1"] != before["v1"]


async def test_a_window_that_fails_by_hand_is_told_and_stays_to_be_learned(house: House) -> None:
    await house.tell("ann", "one")
    house.learner.failures["one"] = [ProviderUnavailable()]
    config = (await house.store.read(stored_config)).model_copy(update={"playbook_configs": []}).model_dump_json()
    await house.store.write(lambda tx: tx.configs.put(config, 1))
    await house.start()
    made = await house.service.run_manually(house.store, Kind.PROFILE, EVERYBODY, {})
    assert (made.count, made.failed_users) == (0, 1)
    assert len(await house.store.read(lambda tx: tx.interactions.unlearned("ann", 10))) == 1
    again = await house.service.run_manually(house.store, Kind.PROFILE, EVERYBODY, {})
    assert (again.count, again.failed_users) == (1, 0)
    assert await house.contents(Status.CURRENT) == ["one"]
    assert await house.store.read(lambda tx: tx.interactions.unlearned("ann", 10)) == []
