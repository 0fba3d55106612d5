"""When learning happens, and what becomes of windows that fail, with a clock and a learner of the test's own."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from reflexio.engine.job_runner import DurableWork
from reflexio.engine.memory import MemoryJournal
from reflexio.errors import (
    ContextTooLong,
    NoWorker,
    ProviderRefused,
    ProviderUnavailable,
    ReflexioError,
    UnreadableAnswer,
)
from reflexio.interactions import erase, publish
from reflexio.jobs.retry import LONGEST_BACKOFF, LONGEST_PROBE
from reflexio.learning import scheduler, stall
from reflexio.learning.failure import ATTEMPTS_BEFORE_CHECK, MOST_ATTEMPTS
from reflexio.learning.scheduler import LearningScheduler
from reflexio.learning.service import LearningService, learning_status
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
from reflexio.models.interaction import PublishRequest, PublishResponse
from reflexio.models.learning import Kind, Learning, ProfileTimeToLive
from reflexio.models.paging import Page
from reflexio.organisations import configuration
from reflexio.ports.storage import LearnedWindow, LearningFilter, Store, TurnFilter, Tx
from reflexio.providers.scripted import ScriptedEmbedder
from reflexio.retrieval.scope import ScopeClassifier
from reflexio.storage.sqlite import SqliteDatabase, open_sqlite
from tests.builders import turns

START, DAY = 1_000_000, 86_400
UNREADABLE = UnreadableAnswer("not JSON")


@dataclass
class HandClock:
    at: int = START

    def now(self) -> int:
        return self.at


@dataclass
class Pupil:
    """Learns every new turn as a fact, unless told to fail."""

    errors: list[Exception] = field(default_factory=list)
    always: Exception | None = None
    seen: list[Window] = field(default_factory=list)
    poison: str = ""
    broken: Exception | None = None
    undecided: list[Exception] = field(default_factory=list)
    failing_reads: set[int] = field(default_factory=set)
    """Numbers of readings that fail once."""
    checks: int = 0
    time_to_live: ProfileTimeToLive = ProfileTimeToLive.INFINITY
    longest: int = 99
    read: list[Window] = field(default_factory=list)
    name: str = "pupil"
    fingerprint: str = "f"

    async def check(self) -> Spend:
        self.checks += 1
        if self.broken:
            raise self.broken
        return Spend()

    async def extract(self, window: Window, config: Config, kinds: frozenset[Kind]) -> Extraction:
        self.seen.append(window)
        if self.errors:
            raise self.errors.pop(0)
        if self.always and self.poison in "".join(turn.content for turn in window.turns):
            raise self.always
        if len(window.turns) > self.longest:
            raise ContextTooLong("too long")
        if len(self.read) + 1 in self.failing_reads:
            self.failing_reads.clear()
            raise ProviderUnavailable("away")
        self.read.append(window)
        new = [turn for turn in window.turns if turn.is_new]
        return Extraction(
            tuple(
                ExtractedLearning(
                    Kind.PROFILE,
                    "profile",
                    t.content,
                    evidence=(Quote(t.id, t.content),),
                    time_to_live=self.time_to_live,
                )
                for t in new
            ),
            Spend(self.name, calls=1, input_tokens=10),
        )

    async def summarise(self, gathered: ClusterToSummarise, config: Config) -> Summary:
        return Summary()

    async def consolidate(self, questions: Sequence[Neighbourhood], config: Config) -> Consolidation:
        if self.undecided:
            raise self.undecided.pop(0)
        return Consolidation(tuple(Decision("add") for _ in questions), Spend(self.name, calls=1))

    def said(self) -> list[list[str]]:
        """The new turns of each window that was read."""
        return [[turn.content for turn in each.turns if turn.is_new] for each in self.seen]


class Room:
    """Learning on a database of its own."""

    def __init__(self, database: SqliteDatabase) -> None:
        self.database, self.clock, self.pupil = database, HandClock(), Pupil()
        self.work = DurableWork(MemoryJournal(), concurrency=4, clock=self.clock)
        embedder, stalls = ScriptedEmbedder(), StallMonitor(self.clock)
        setup = LearnerSetup(self.pupil, embedder, self.clock, ScopeClassifier(embedder))
        LearningWorker(database, self.clock, lambda config: setup, stalls).register(self.work)
        self.scheduler = LearningScheduler(database, self.work, self.clock, stalls)
        self.service = LearningService(self.work, self.clock, self.scheduler)

    @property
    def store(self) -> Store:
        return self.database.of("org")

    async def say(self, *said: str, user: str = "ann", org: str = "org", **more: object) -> PublishResponse:
        wanted = PublishRequest.model_validate(
            {"user_id": user, "interaction_data_list": turns(*said), "session_id": "s", **more}
        )
        return await publish.publish(self.database, self.database.of(org), self.clock, wanted)

    async def configure(self, **changes: object) -> None:
        await configuration.change(self.store, self.clock, changes)

    async def look(self) -> int:
        """One look at who waits, and all that it begins."""
        begun = await self.scheduler.start_due()
        while running := self.scheduler.tasks._tasks:
            await asyncio.gather(*running)
        return begun

    async def rows(self, user: str = "ann") -> Sequence[Learning]:
        where = LearningFilter(Kind.PROFILE, user_id=user)
        return (await self.store.read(lambda tx: tx.learnings.page(where, Page(1000)))).rows

    async def learned(self, user: str = "ann") -> list[str]:
        return sorted(row.content for row in await self.rows(user))

    async def windows(self) -> list[LearnedWindow]:
        def read(tx: Tx) -> list[LearnedWindow]:
            newest = tx.interactions.newest(TurnFilter("ann"), 1)
            return tx.windows.of_turns("ann", newest)

        return await self.store.read(read)

    async def status(self, answer: PublishResponse) -> tuple[str, str | None]:
        told = await learning_status(self.store, self.clock, answer.request_id or "")
        return told.status, told.reason


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    database = open_sqlite(tmp_path / "reflexio.db")
    room = Room(database)
    await room.work.start()
    yield room
    await room.work.close()
    await database.close()


async def test_nothing_is_due_before_a_stride_the_end_of_a_session_or_a_quiet_minute(room: Room) -> None:
    await room.say("one", "two")
    assert await room.look() == 0
    room.clock.at += 59
    assert await room.look() == 0
    room.clock.at += 1
    assert await room.look() == 1
    assert room.pupil.said() == [["one", "two"]]
    assert await room.look() == 0


async def test_a_stride_is_enough_and_earlier_turns_are_context(room: Room) -> None:
    await room.configure(window_size=4, stride_size=2)
    for said in (("one", "two"), ("three", "four")):
        await room.say(*said)
        assert await room.look() == 1
    assert [turn.content for turn in room.pupil.seen[1].turns] == ["one", "two", "three", "four"]
    assert room.pupil.said() == [["one", "two"], ["three", "four"]]


async def test_a_clock_that_was_set_back_holds_nobody_up(room: Room) -> None:
    await room.say("one")
    room.pupil.errors.append(ProviderUnavailable("busy"))
    room.clock.at += 60
    await room.look()
    room.clock.at -= 86_400
    assert await room.look() == 1
    assert await room.learned() == ["one"]


@pytest.mark.parametrize("error", [UNREADABLE, ProviderUnavailable("busy"), KeyError("a defect")])
async def test_a_window_that_failed_is_tried_again_later(room: Room, error: Exception) -> None:
    answer = await room.say("one", session_finished=True)
    room.pupil.errors.append(error)
    assert await room.look() == 1
    assert await room.status(answer) == ("pending", "retrying")
    assert await room.look() == 0
    room.clock.at += 2
    assert await room.look() == 1
    assert await room.status(answer) == ("done", "covered")
    assert await room.learned() == ["one"]


@pytest.mark.parametrize("error", [UNREADABLE, KeyError("a defect")])
async def test_a_window_that_never_succeeds_is_set_aside_and_the_next_one_is_learned(
    room: Room, error: Exception
) -> None:
    first = await room.say("one", session_finished=True)
    room.pupil.always = error
    for _ in range(MOST_ATTEMPTS):
        assert await room.look() == 1
        room.clock.at += 300
    status, reason = await room.status(first)
    assert status == "failed"
    assert str(error.args[0]) in str(reason) or str(error) in str(reason)
    room.pupil.always = None
    second = await room.say("two", session_finished=True)
    assert await room.look() == 1
    assert (await room.status(second))[0] == "done"
    assert await room.learned() == ["two"]
    assert len(room.pupil.seen) == MOST_ATTEMPTS + 1


async def test_outages_do_not_count_towards_setting_aside(room: Room) -> None:
    answer = await room.say("one", session_finished=True)
    busy = ProviderUnavailable("busy", is_overloaded=True)
    room.pupil.errors = [*[busy] * (MOST_ATTEMPTS + 3), UNREADABLE]
    for _ in range(MOST_ATTEMPTS + 4):
        assert await room.look() == 1
        room.clock.at += 300
    assert (await room.status(answer))[0] == "pending"
    await room.look()
    assert await room.learned() == ["one"]


@pytest.mark.parametrize("error", [UNREADABLE, ProviderUnavailable("late"), KeyError("a defect")])
async def test_windows_of_several_users_that_fail_alike_stall_and_none_is_set_aside(
    room: Room, error: Exception
) -> None:
    users = ["ann", "bob", "cid", "dan"]
    answers = [await room.say(user, user=user, session_finished=True) for user in users]
    room.pupil.always = error
    for _ in range(MOST_ATTEMPTS * 6):
        await room.look()
        room.clock.at += 100
    current = await room.store.read(stall.state)
    assert current is not None
    assert current.reason == "provider_error"
    assert str(error.args[0]) in current.message
    assert {await room.status(answer) for answer in answers} == {("pending", "stalled")}
    room.pupil.always = None
    room.clock.at += 300
    await room.look()
    await room.look()
    assert [await room.learned(user) for user in users] == [[user] for user in users]
    assert await room.store.read(stall.state) is None


@pytest.mark.parametrize("error", [UNREADABLE, ProviderUnavailable("late")])
async def test_one_window_that_fails_while_others_are_learned_is_set_aside_with_the_reason(
    room: Room, error: Exception
) -> None:
    odd = await room.say("odd", user="odd", session_finished=True)
    room.pupil.poison, room.pupil.always = "odd", error
    for number in range(MOST_ATTEMPTS):
        await room.say("fine", user=f"user-{number}", session_finished=True)
        await room.look()
        room.clock.at += 300
    status, reason = await room.status(odd)
    assert status == "failed"
    assert f"after {MOST_ATTEMPTS} attempts" in str(reason)
    assert str(error.args[0]) in str(reason)
    assert await room.store.read(stall.state) is None
    assert room.pupil.checks == 0


async def test_a_single_user_stalls_when_the_model_cannot_answer_a_tiny_question(room: Room) -> None:
    answer = await room.say("one", session_finished=True)
    room.pupil.always = room.pupil.broken = UNREADABLE
    for _ in range(MOST_ATTEMPTS * 4):
        await room.look()
        room.clock.at += LONGEST_PROBE
    assert await room.status(answer) == ("pending", "stalled")
    # Once it is stalled, only the tiny question is paid for.
    assert len(room.pupil.seen) == ATTEMPTS_BEFORE_CHECK
    room.pupil.always = room.pupil.broken = None
    room.clock.at += LONGEST_PROBE
    await room.look()
    assert await room.learned() == ["one"]
    assert await room.store.read(stall.state) is None


async def test_the_wait_that_a_provider_asks_for_holds_for_all_users_and_is_bounded(room: Room) -> None:
    await room.say("one", session_finished=True)
    room.pupil.errors = [ProviderUnavailable("slow down", retry_after=40, is_overloaded=True)]
    await room.look()
    await room.say("two", user="bob", session_finished=True)
    room.clock.at += 39
    assert await room.look() == 0
    room.clock.at += 1
    assert await room.look() == 2
    room.pupil.errors = [ProviderUnavailable("come next year", retry_after=1e9, is_overloaded=True)]
    await room.say("three", session_finished=True)
    await room.look()
    room.clock.at += LONGEST_BACKOFF
    assert await room.look() == 1
    assert await room.learned() == ["one", "three"]


async def test_a_lasting_outage_stalls_and_a_short_one_does_not(room: Room) -> None:
    await room.say("one", session_finished=True)
    room.pupil.always = ProviderUnavailable("busy", is_overloaded=True)
    await room.look()
    room.clock.at += 30
    await room.look()
    assert await room.store.read(stall.state) is None
    room.clock.at += 60
    await room.look()
    assert await room.store.read(stall.state)
    room.pupil.always = None
    room.clock.at += LONGEST_BACKOFF
    await room.look()
    assert await room.learned() == ["one"]


async def test_an_organisation_learns_as_many_windows_at_once_as_its_model_takes(room: Room) -> None:
    await room.configure(llm_config={"concurrency": 2})
    for user in ("ann", "bob", "cid"):
        await room.say("one", user=user, session_finished=True)
    await room.say("one", org="other", session_finished=True)
    assert await room.look() == 3
    assert await room.look() == 1


async def test_a_window_that_is_too_long_is_read_in_parts(room: Room) -> None:
    room.pupil.longest = 2
    await room.say(*"abcdefg", session_finished=True)
    await room.look()
    assert [turn.content for window in room.pupil.read for turn in window.turns if turn.is_new] == [*"abcdefg"]
    assert max(len(window.turns) for window in room.pupil.read) <= 2
    assert len(await room.store.read(lambda tx: tx.windows.of_turns("ann", range(1, 99)))) == 1


@pytest.mark.parametrize(("said", "expires"), [(-DAY // 2, DAY // 2), (0, DAY), (DAY, DAY)])
async def test_time_to_live_counts_from_when_it_was_said_and_never_from_the_future(
    room: Room, said: int, expires: int
) -> None:
    room.pupil.time_to_live = ProfileTimeToLive.ONE_DAY
    await say_at(room, START + said, "I am in Rome.")
    await room.look()
    (row,) = await room.rows()
    assert row.expires_at == START + expires


async def test_what_no_longer_holds_when_it_is_read_is_not_learned(room: Room) -> None:
    room.pupil.time_to_live = ProfileTimeToLive.ONE_DAY
    await say_at(room, START - 2 * DAY, "I am in Rome.")
    await room.look()
    assert await room.learned() == []
    (window,) = await room.windows()
    assert window.counts["expired"] == 1


async def say_at(room: Room, at: int, said: str) -> None:
    await room.say(
        said, interaction_data_list=[{**turn, "created_at": at} for turn in turns(said)], session_finished=True
    )


AWAY = ProviderUnavailable("away")


async def learn_beside_a_known_fact(room: Room, *errors: Exception) -> None:
    """A fact is stored; another one near it needs a consolidation, which fails."""
    await room.say("I have a small dog.", session_finished=True)
    await room.look()
    room.pupil.undecided += errors
    await room.say("I have a small dog, Rex.", session_finished=True)
    await room.look()


async def test_an_extraction_is_not_paid_again_when_the_consolidation_fails(room: Room) -> None:
    await learn_beside_a_known_fact(room, AWAY, UNREADABLE, AWAY)
    for _ in range(3):
        room.clock.at += LONGEST_BACKOFF
        await room.look()
    assert room.pupil.said() == [["I have a small dog."], ["I have a small dog, Rex."]]
    assert await room.learned() == ["I have a small dog, Rex.", "I have a small dog."]
    assert await room.store.read(lambda tx: tx.windows.finished_steps("ann")) == []


async def test_turns_that_come_meanwhile_wait_for_the_next_window(room: Room) -> None:
    await learn_beside_a_known_fact(room, AWAY)
    await room.say("I live in Oslo.", session_finished=True)
    room.clock.at += LONGEST_BACKOFF
    for _ in range(2):
        await room.look()
    assert room.pupil.said()[1:] == [["I have a small dog, Rex."], ["I live in Oslo."]]


async def test_parts_of_a_long_window_are_paid_once(room: Room) -> None:
    room.pupil.longest = 2
    await room.say("Likes figs.", "Has a dog.", "Knows Rome.", session_finished=True)
    room.pupil.failing_reads = {2}
    await room.look()
    room.clock.at += LONGEST_BACKOFF
    await room.look()
    read = [[turn.content for turn in window.turns if turn.is_new] for window in room.pupil.read]
    assert read == [["Likes figs."], ["Has a dog.", "Knows Rome."]]
    assert await room.learned() == ["Knows Rome.", "Likes figs."]


@pytest.mark.parametrize("change", ["types", "prompts", "model"])
async def test_a_changed_question_is_asked_anew(room: Room, change: str) -> None:
    await learn_beside_a_known_fact(room, AWAY)
    match change:
        case "types":
            await room.configure(agent_context_prompt="You sell dogs.")
        case "prompts":
            room.pupil.fingerprint = "other"
        case "model":
            room.pupil.name = "other"
    room.clock.at += LONGEST_BACKOFF
    await room.look()
    assert room.pupil.said()[1:] == [["I have a small dog, Rex."]] * 2


async def test_what_was_paid_for_is_deleted_with_the_turns_it_quotes(room: Room) -> None:
    await learn_beside_a_known_fact(room, AWAY)
    (step,) = await room.store.read(lambda tx: tx.windows.finished_steps("ann"))
    assert "Rex" in str(step.result)
    await erase.delete_interaction(room.store, "ann", step.turn_ids[0])
    assert await room.store.read(lambda tx: tx.windows.finished_steps("ann")) == []


async def test_a_stall_is_probed_by_one_window_with_growing_pauses(room: Room) -> None:
    room.pupil.always = ProviderRefused("no", reason="auth")
    for user in ("ann", "bob", "cid"):
        await room.say("one", user=user, session_finished=True)
    await room.look()
    assert await room.store.read(stall.state)
    asked = []
    for _ in range(60):
        before = len(room.pupil.seen)
        await room.look()
        asked.append(len(room.pupil.seen) - before)
        room.clock.at += 1
    assert max(asked) == 1
    assert sum(asked) <= 7
    assert sum(asked[-LONGEST_PROBE - 1 :]) >= 1


async def test_after_a_stall_everybody_is_learned_once(room: Room) -> None:
    room.pupil.always = ProviderRefused("no", reason="billing")
    users = ["ann", "bob", "cid"]
    for user in users:
        await room.say(user, user=user, session_finished=True)
    await room.look()
    room.pupil.always = None
    room.clock.at += LONGEST_PROBE
    await room.look()
    await room.look()
    assert [await room.learned(user) for user in users] == [["ann"], ["bob"], ["cid"]]
    assert await room.store.read(stall.state) is None


async def test_a_changed_configuration_ends_the_pause(room: Room) -> None:
    answer = await room.say("one", session_finished=True)
    room.pupil.errors = [ProviderRefused("no", reason="auth")] * 4
    for _ in range(4):
        assert await room.look() == 1
        room.clock.at += LONGEST_PROBE
    room.clock.at -= LONGEST_PROBE
    assert await room.look() == 0
    await room.configure(agent_context_prompt="mended")
    assert await room.look() == 1
    assert (await room.status(answer))[0] == "done"


async def test_those_who_are_not_due_hide_nobody(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "PAGE_SIZE", 3)
    await room.configure(extraction_idle_timeout_seconds=0)
    for number in range(7):
        await room.say("early", user=f"user-{number}")
    room.clock.at += 1
    await room.say("late", user="zoe", session_finished=True)
    for _ in range(3):
        await room.look()
    assert await room.learned("zoe") == ["late"]


async def test_windows_of_one_organisation_that_never_end_stop_no_other(room: Room) -> None:
    for number in range(40):
        await room.say("hang", user=f"user-{number}", org="noisy", session_finished=True)
        room.scheduler._running["noisy", f"user-{number}"] += 1  # each waits for its model
    await room.say("one", session_finished=True)
    assert await room.look() == 1
    assert await room.learned() == ["one"]


async def test_users_of_an_organisation_with_many_waiting_hide_nobody_else(room: Room) -> None:
    for number in range(scheduler.PAGE_SIZE):
        await room.say("early", user=f"user-{number}", org="a-noisy-one", session_finished=True)
    room.clock.at += 1
    await room.say("late", session_finished=True)
    await room.look()
    assert await room.learned() == ["late"]


async def test_a_used_up_budget_of_one_organisation_holds_up_no_other(room: Room) -> None:
    await room.configure(daily_token_budget=0)
    held = await room.say("one", session_finished=True)
    await room.say("two", org="other", session_finished=True)
    assert await room.look() == 1
    assert room.pupil.said() == [["two"]]
    assert await room.status(held) == ("pending", "budget_used_up")
    await room.configure(daily_token_budget=None)
    assert await room.look() == 1
    assert await room.learned() == ["one"]


async def test_windows_that_share_turns_learn_them_once(room: Room) -> None:
    """What a crash leaves: the window of before, and the larger one planned after it."""
    await room.say("one", "Noted.", "two", session_finished=True)
    first = await room.scheduler.start_due()
    room.scheduler._running.clear()
    await room.say("three", session_finished=True)
    second = await room.scheduler.start_due()
    await asyncio.gather(*room.scheduler.tasks._tasks)
    assert (first, second) == (1, 1)
    assert await room.learned() == ["one", "three", "two"]


async def test_a_waited_publish_is_left_alone_by_the_background(room: Room) -> None:
    answer = await room.say("one", session_finished=True)
    await room.store.write(lambda tx: tx.users.reserve("ann", room.clock.at + 60))
    assert await room.scheduler.start_due() == 0
    told = await room.service.learn_publish(room.store, "ann", answer)
    assert (told.learning_status, told.profiles_added) == ("done", 1)


async def test_a_waited_publish_that_failed_is_learned_later(room: Room) -> None:
    room.pupil.errors.append(ReflexioError("no"))
    answer = await room.say("one")
    told = await room.service.learn_publish(room.store, "ann", answer)
    assert told.learning_status == "failed"
    assert str(told.learning_reason).endswith("no")
    room.clock.at += 60
    await room.look()
    assert await room.learned() == ["one"]


async def test_a_user_whose_waiting_caller_is_gone_is_learned_by_the_background(room: Room) -> None:
    await room.say("one", session_finished=True)
    await room.store.write(lambda tx: tx.users.reserve("ann", room.clock.at + 60))
    assert await room.scheduler.start_due() == 0
    room.clock.at += 61
    await room.look()
    assert await room.learned() == ["one"]


async def test_without_a_worker_a_waited_publish_says_so(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nobody() -> None:
        raise NoWorker

    monkeypatch.setattr(room.work, "ready", nobody)
    told = await room.service.learn_publish(room.store, "ann", await room.say("one"))
    assert told.learning_status == "deferred"
    assert "reflexio worker" in str(told.learning_reason)
