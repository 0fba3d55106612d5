"""The contract of every engine."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from reflexio.engine import job_runner
from reflexio.engine.job_runner import DurableWork
from reflexio.engine.memory import MemoryJournal
from reflexio.errors import NotFound, StorageUnavailable
from reflexio.ports.clock import SystemClock
from reflexio.ports.storage import Changes, Database
from reflexio.ports.work import Job, Journal, Json, State, Steps, Work, Workflow
from reflexio.storage.postgres import open_postgres
from reflexio.storage.sqlite import open_sqlite
from reflexio.storage.tables import journal as journal_tables
from tests.contract.conftest import OpenDatabase

PATIENCE = 30
OpenWork = Callable[..., Awaitable[Work]]


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
async def journal(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Journal, Changes | None]]:
    if request.param == "memory":
        yield MemoryJournal(), None
        return
    database: Database
    if request.param == "sqlite":
        database = open_sqlite(tmp_path / "data.db")
    else:
        database = open_postgres(request.getfixturevalue("empty_postgres"))
    yield database.journal, database.changes
    await database.close()


@pytest.fixture
async def open_work(journal: tuple[Journal, Changes | None]) -> AsyncIterator[OpenWork]:
    """Opens an engine; the next one continues with what the last one left."""
    opened = list[Work]()

    async def open_(*, concurrency: int = 8, version: int = 1, starts: bool = True, **workflows: Workflow) -> Work:
        for work in opened:
            await work.close()
        work = DurableWork(journal[0], changes=journal[1], concurrency=concurrency, grace=0.3)
        opened[:] = [work]
        for name, workflow in workflows.items():
            work.register(name, workflow, version=version)
        if starts:
            await work.start()
        return work

    yield open_
    for work in opened:
        await work.close()


async def ended(work: Work, key: str) -> Job:
    async with asyncio.timeout(PATIENCE):
        return await work.wait(key)


class RecordingWorkflow:
    """A workflow whose steps record what they do and stop where a test tells them to."""

    def __init__(self, *steps: str) -> None:
        self.steps = steps or ("one",)
        self.finished: list[str] = []
        self.begun: asyncio.Queue[str] = asyncio.Queue()
        self.gates: dict[str, asyncio.Event] = {}
        self.at_once = self.most_at_once = 0

    def hold(self, name: str) -> asyncio.Event:
        return self.gates.setdefault(name, asyncio.Event())

    async def next_begun(self) -> str:
        async with asyncio.timeout(PATIENCE):
            return await self.begun.get()

    async def __call__(self, steps: Steps, data: Json) -> Json:
        for name in self.steps:
            await steps(name, lambda name=name: self._act(data["job"], name))  # type: ignore[misc]
        return {"job": data["job"]}

    async def _act(self, job: str, step: str) -> Json:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            self.begun.put_nowait(f"{job}.{step}")
            if gate := self.gates.get(f"{job}.{step}"):
                await gate.wait()
            await asyncio.sleep(0)
            self.finished.append(f"{job}.{step}")
            return {}
        finally:
            self.at_once -= 1


async def answer(value: Any) -> Any:
    return value


async def test_a_job_ends_with_the_result_of_its_workflow(open_work: OpenWork) -> None:
    async def add(steps: Steps, data: Json) -> Json:
        first = await steps("first", lambda: answer({"sum": data["a"] + data["b"]}))
        return await steps("second", lambda: answer({"sum": first["sum"] + 1}))

    work = await open_work(add=add)
    job = await work.enqueue("add", "k", {"a": 1, "b": 2}, lane="l")
    assert (job.key, job.name) == ("k", "add")
    assert await ended(work, "k") == Job("k", "add", "done", {"sum": 4})
    assert await work.get("k") == Job("k", "add", "done", {"sum": 4})


async def test_the_same_key_is_the_same_job(open_work: OpenWork) -> None:
    recording = RecordingWorkflow()
    gate = recording.hold("a.one")
    work = await open_work(recording=recording, other=recording)
    await work.enqueue("recording", "k", {"job": "a"}, lane="l")
    assert await recording.next_begun() == "a.one"
    again = await work.enqueue("other", "k", {"job": "b"}, lane="m")
    assert (again.name, again.state) == ("recording", "running")
    gate.set()
    await ended(work, "k")
    assert await work.enqueue("recording", "k", {"job": "c"}, lane="l") == Job("k", "recording", "done", {"job": "a"})
    assert await ended(work, "k") == Job("k", "recording", "done", {"job": "a"})
    assert recording.finished == ["a.one"]


async def test_concurrent_enqueues_of_one_key_are_one_job(open_work: OpenWork) -> None:
    recording = RecordingWorkflow()
    work = await open_work(recording=recording)
    await asyncio.gather(*(work.enqueue("recording", "k", {"job": "a"}, lane="l") for _ in range(10)))
    assert (await ended(work, "k")).state == "done"
    assert recording.finished == ["a.one"]


async def test_unknown_workflows_and_jobs_raise_not_found(open_work: OpenWork) -> None:
    work = await open_work(recording=RecordingWorkflow())
    with pytest.raises(NotFound, match="workflow 'nothing'"):
        await work.enqueue("nothing", "k", {}, lane="l")
    with pytest.raises(NotFound, match="job 'k'"):
        await work.wait("k")
    assert await work.get("k") is None
    assert not await work.cancel("k")


async def test_data_that_is_not_json_is_refused(open_work: OpenWork) -> None:
    work = await open_work(recording=RecordingWorkflow())
    with pytest.raises(TypeError):
        await work.enqueue("recording", "k", {"job": {1, 2}}, lane="l")
    with pytest.raises(ValueError, match="JSON"):
        await work.enqueue("recording", "k", {"job": float("nan")}, lane="l")
    assert await work.get("k") is None


async def test_jobs_of_a_lane_run_in_the_order_of_their_enqueueing(open_work: OpenWork) -> None:
    recording = RecordingWorkflow("one", "two")
    work = await open_work(recording=recording)
    names = [f"{number:02}" for number in range(20, 0, -1)]
    for name in names:
        await work.enqueue("recording", name, {"job": name}, lane="l")
    await ended(work, names[-1])
    assert recording.finished == [f"{name}.{step}" for name in names for step in ("one", "two")]


async def test_lanes_run_side_by_side_up_to_the_concurrency(open_work: OpenWork) -> None:
    recording = RecordingWorkflow("one", "two")
    names = [f"{number}" for number in range(12)]
    gates = [recording.hold(f"{name}.one") for name in names]
    work = await open_work(recording=recording, concurrency=3)
    for name in names:
        await work.enqueue("recording", name, {"job": name}, lane=name)
    assert len({await recording.next_begun() for _ in range(3)}) == 3
    for gate in gates:
        gate.set()
    for name in names:
        await ended(work, name)
    assert recording.most_at_once == 3


async def test_a_long_lane_starves_no_other(open_work: OpenWork) -> None:
    recording = RecordingWorkflow()
    gate = recording.hold("0.one")
    work = await open_work(recording=recording, concurrency=1)
    for number in range(30):
        await work.enqueue("recording", f"{number}", {"job": f"{number}"}, lane="long")
    await recording.next_begun()
    await work.enqueue("recording", "short", {"job": "short"}, lane="short")
    gate.set()
    await ended(work, "29")
    assert recording.finished.index("short.one") < 29


async def test_a_failed_job_has_an_error_and_does_not_block_its_lane(open_work: OpenWork) -> None:
    async def fail(steps: Steps, data: Json) -> Json:
        raise NotFound(what="tea", id="green")

    work = await open_work(fail=fail, recording=RecordingWorkflow())
    await work.enqueue("fail", "bad", {}, lane="l")
    await work.enqueue("recording", "good", {"job": "a"}, lane="l")
    assert await ended(work, "bad") == Job("bad", "fail", "failed", error="There is no tea 'green'.")
    assert (await ended(work, "good")).state == "done"


async def test_an_error_of_a_step_reaches_the_workflow_and_the_step_may_be_tried_again(open_work: OpenWork) -> None:
    tries: list[int] = []

    async def weak() -> Json:
        tries.append(1)
        if len(tries) < 3:
            raise NotFound(what="answer", id=len(tries))
        return {"tries": len(tries)}

    async def stubborn(steps: Steps, data: Json) -> Json:
        while True:
            try:
                return await steps("weak", weak)
            except NotFound:
                await steps(f"rest {len(tries)}", lambda: answer({}))

    work = await open_work(stubborn=stubborn)
    await work.enqueue("stubborn", "k", {}, lane="l")
    assert await ended(work, "k") == Job("k", "stubborn", "done", {"tries": 3})


@pytest.mark.parametrize("value", [{"x": {1, 2}}, {"x": float("inf")}, {"x": object()}])
async def test_a_result_that_is_not_json_fails_the_job(open_work: OpenWork, value: Json) -> None:
    async def odd_step(steps: Steps, data: Json) -> Json:
        return await steps("odd", lambda: answer(value))

    async def odd_result(steps: Steps, data: Json) -> Json:
        return value

    work = await open_work(odd_step=odd_step, odd_result=odd_result)
    for name in ("odd_step", "odd_result"):
        await work.enqueue(name, name, {}, lane=name)
        job = await ended(work, name)
        assert job.state == "failed"
        assert "JSON" in job.error


async def test_results_are_returned_as_they_would_be_after_a_crash(open_work: OpenWork) -> None:
    seen: list[Json] = []

    async def look(steps: Steps, data: Json) -> Json:
        seen.append(data)
        seen.append(await steps("look", lambda: answer({"pair": (1, 2), 3: None})))
        return {"pair": (1, 2)}

    work = await open_work(look=look)
    await work.enqueue("look", "k", {"pair": (1, 2)}, lane="l")
    assert (await ended(work, "k")).result == {"pair": [1, 2]}
    assert seen == [{"pair": [1, 2]}, {"pair": [1, 2], "3": None}]


@pytest.mark.parametrize(
    "text", ["half \ud800", "nul \x00", "🫖 茶", "x" * 3_000_000], ids=["half", "nul", "tea", "long"]
)
async def test_any_text_is_stored(open_work: OpenWork, text: str) -> None:
    async def echo(steps: Steps, data: Json) -> Json:
        return await steps("echo", lambda: answer({"text": data["text"]}))

    work = await open_work(echo=echo)
    await work.enqueue("echo", "k", {"text": text}, lane="l")
    await ended(work, "k")
    assert await work.get("k") == Job("k", "echo", "done", {"text": text})


async def test_two_steps_of_one_name_fail_the_job(open_work: OpenWork) -> None:
    async def twice(steps: Steps, data: Json) -> Json:
        await steps("same", lambda: answer({"first": 1}))
        return await steps("same", lambda: answer({"second": 2}))

    work = await open_work(twice=twice)
    await work.enqueue("twice", "k", {}, lane="l")
    assert (await ended(work, "k")).error == "Two steps of one workflow are named 'same'; number the steps of a loop."


async def test_steps_of_one_workflow_may_run_at_once(open_work: OpenWork) -> None:
    recording = RecordingWorkflow()

    async def spread(steps: Steps, data: Json) -> Json:
        names = ("a", "b", "c")
        gates = [recording.hold(f"job.{name}") for name in names]
        running = asyncio.gather(*(steps(name, lambda name=name: recording._act("job", name)) for name in names))  # type: ignore[misc]
        assert {await recording.next_begun() for _ in names} == {"job.a", "job.b", "job.c"}
        for gate in gates:
            gate.set()
        await running
        return {}

    work = await open_work(spread=spread)
    await work.enqueue("spread", "k", {}, lane="l")
    assert (await ended(work, "k")).state == "done"


async def test_a_step_that_cancels_itself_fails_the_job(open_work: OpenWork) -> None:
    async def give_up() -> Json:
        raise asyncio.CancelledError

    async def in_a_step(steps: Steps, data: Json) -> Json:
        return await steps("give up", give_up)

    async def outside(steps: Steps, data: Json) -> Json:
        return await give_up()

    work = await open_work(in_a_step=in_a_step, outside=outside)
    for name in ("in_a_step", "outside"):
        await work.enqueue(name, name, {}, lane="l")
        job = await ended(work, name)
        assert (job.state, "cancelled from within" in job.error) == ("failed", True)


async def test_workflow_and_steps_run_on_the_loop_of_the_caller(open_work: OpenWork) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def note() -> Json:
        loops.append(asyncio.get_running_loop())
        return {}

    async def look(steps: Steps, data: Json) -> Json:
        await note()
        return await steps("note", note)

    work = await open_work(look=look)
    await work.enqueue("look", "k", {}, lane="l")
    await ended(work, "k")
    assert loops == [asyncio.get_running_loop()] * 2


async def test_a_step_may_enqueue_jobs(open_work: OpenWork) -> None:
    recording = RecordingWorkflow()

    async def parent(steps: Steps, data: Json) -> Json:
        async def ask() -> Json:
            await work.enqueue("recording", "child", {"job": "child"}, lane="other")
            return {"child": (await work.wait("child")).state}

        return await steps("ask", ask)

    work = await open_work(parent=parent, recording=recording)
    await work.enqueue("parent", "k", {}, lane="l")
    assert (await ended(work, "k")).result == {"child": "done"}
    assert recording.finished == ["child.one"]


async def test_all_waiting_callers_get_the_job(open_work: OpenWork) -> None:
    recording = RecordingWorkflow()
    gate = recording.hold("a.one")
    work = await open_work(recording=recording)
    await work.enqueue("recording", "k", {"job": "a"}, lane="l")
    waiting = [asyncio.create_task(ended(work, "k")) for _ in range(5)]
    impatient = asyncio.create_task(work.wait("k"))
    await recording.next_begun()
    impatient.cancel()
    gate.set()
    assert {(await task).state for task in waiting} == {"done"}


async def test_a_cancelled_job_in_the_lane_never_begins(open_work: OpenWork) -> None:
    recording = RecordingWorkflow()
    gate = recording.hold("a.one")
    work = await open_work(recording=recording)
    for name in ("a", "b", "c"):
        await work.enqueue("recording", name, {"job": name}, lane="l")
    await recording.next_begun()
    waiting = asyncio.create_task(ended(work, "b"))
    assert await work.cancel("b")
    assert await waiting == Job("b", "recording", "cancelled")
    assert not await work.cancel("b")
    gate.set()
    await ended(work, "c")
    assert recording.finished == ["a.one", "c.one"]
    assert await work.enqueue("recording", "b", {"job": "b"}, lane="l") == Job("b", "recording", "cancelled")


async def test_cancelling_frees_the_place_of_a_step_that_never_ends(open_work: OpenWork) -> None:
    recording = RecordingWorkflow("one", "two")
    recording.hold("a.one")  # for ever
    work = await open_work(recording=recording)
    await work.enqueue("recording", "a", {"job": "a"}, lane="l")
    await work.enqueue("recording", "b", {"job": "b"}, lane="l")
    assert await recording.next_begun() == "a.one"
    assert await work.cancel("a")
    assert (await ended(work, "a")).state == "cancelled"
    assert (await ended(work, "b")).state == "done"
    assert recording.finished == ["b.one", "b.two"]
    assert not await work.cancel("b")


async def test_a_cancelled_job_that_waits_for_its_lane_leaves_it(open_work: OpenWork) -> None:
    recording = RecordingWorkflow("one")
    gate = recording.hold("a.one")
    work = await open_work(recording=recording)
    for name in "abc":
        await work.enqueue("recording", name, {"job": name}, lane="l")
    await recording.next_begun()
    assert await work.cancel("b")
    gate.set()
    assert (await ended(work, "c")).state == "done"
    assert recording.finished == ["a.one", "c.one"]


async def test_hung_jobs_of_one_organisation_stop_no_other(open_work: OpenWork) -> None:
    recording = RecordingWorkflow("one")
    hung = [f"b{number}" for number in range(20)]
    for name in hung:
        recording.hold(f"{name}.one")  # for ever
    work = await open_work(recording=recording)
    for name in hung:
        await work.enqueue("recording", name, {"job": name, "org_id": "b"}, lane=name)
    for _ in range(8):
        await recording.next_begun()
    for organisation in ("a", "c"):
        for number in range(5):
            name = f"{organisation}{number}"
            await work.enqueue("recording", name, {"job": name, "org_id": organisation}, lane=name)
            assert (await ended(work, name)).state == "done"


async def test_steps_finished_before_a_stop_do_not_run_again(open_work: OpenWork) -> None:
    recording = RecordingWorkflow("one", "two", "three")
    recording.hold("a.two")
    work = await open_work(recording=recording)
    for name in ("a", "b", "c"):
        await work.enqueue("recording", name, {"job": name}, lane="l")
    assert [await recording.next_begun() for _ in range(2)] == ["a.one", "a.two"]
    recording.gates.clear()
    work = await open_work(recording=recording)
    assert (await ended(work, "c")).state == "done"
    assert recording.finished == [f"{name}.{step}" for name in "abc" for step in ("one", "two", "three")]


async def test_a_stop_waits_for_the_running_step_and_stores_its_result(open_work: OpenWork) -> None:
    recording = RecordingWorkflow("one", "two")
    gate = recording.hold("a.one")
    work = await open_work(recording=recording)
    await work.enqueue("recording", "a", {"job": "a"}, lane="l")
    await recording.next_begun()
    closing = asyncio.create_task(work.close())
    await asyncio.sleep(0)
    gate.set()
    await closing
    assert recording.finished == ["a.one"]
    work = await open_work(recording=recording)
    await ended(work, "a")
    assert recording.finished == ["a.one", "a.two"]


async def test_a_failed_try_is_not_stored_but_later_results_are(open_work: OpenWork) -> None:
    recording, calls = RecordingWorkflow(), list[str]()
    recording.hold("a.last")

    async def weak() -> Json:
        calls.append("weak")
        if len(calls) == 1:
            raise NotFound(what="answer", id=1)
        return {}

    async def spare() -> Json:
        calls.append("spare")
        return {}

    async def careful(steps: Steps, data: Json) -> Json:
        with suppress(NotFound):
            await steps("weak", weak)
        await steps("spare", spare)
        return await steps("last", lambda: recording._act("a", "last"))

    work = await open_work(careful=careful)
    await work.enqueue("careful", "k", {}, lane="l")
    await recording.next_begun()
    recording.gates.clear()
    work = await open_work(careful=careful)
    assert (await ended(work, "k")).state == "done"
    assert calls == ["weak", "spare", "weak"]


async def test_a_changed_workflow_does_not_continue_with_old_results(open_work: OpenWork) -> None:
    recording = RecordingWorkflow("one", "two")
    recording.hold("a.two")
    work = await open_work(recording=recording)
    await work.enqueue("recording", "a", {"job": "a"}, lane="l")
    await work.enqueue("recording", "b", {"job": "b"}, lane="l")
    assert [await recording.next_begun() for _ in range(2)] == ["a.one", "a.two"]
    recording.gates.clear()
    work = await open_work(recording=recording, version=2)
    job = await ended(work, "a")
    assert (job.state, job.error) == (
        "failed",
        "The workflow 'recording' changed (version 1, now 2) after steps were finished.",
    )
    assert (await ended(work, "b")).state == "done"
    assert recording.finished == ["a.one", "b.one", "b.two"]


async def test_a_job_of_an_unregistered_workflow_fails(open_work: OpenWork) -> None:
    recording = RecordingWorkflow()
    recording.hold("a.one")
    work = await open_work(recording=recording)
    await work.enqueue("recording", "a", {"job": "a"}, lane="l")
    await recording.next_begun()
    work = await open_work(other=RecordingWorkflow())
    assert await ended(work, "a") == Job("a", "recording", "failed", error="This Reflexio has no workflow 'recording'.")


async def test_old_jobs_are_forgotten_and_unfinished_ones_are_not(open_work: OpenWork) -> None:
    recording = RecordingWorkflow()
    recording.hold("c.one")
    work = await open_work(recording=recording)
    for name in ("a", "b", "c"):
        await work.enqueue("recording", name, {"job": name}, lane=name)
    await ended(work, "a")
    await ended(work, "b")
    assert {await recording.next_begun() for _ in range(3)} == {"a.one", "b.one", "c.one"}
    now = SystemClock().now()
    assert await work.forget(now - 3600) == 0
    assert await work.forget(now + 3600) == 2
    assert await work.get("a") is None
    job = await work.get("c")
    assert job is not None
    assert job.state == "running"
    await work.enqueue("recording", "a", {"job": "a"}, lane="a")
    assert (await ended(work, "a")).state == "done"


async def test_a_job_enqueued_during_the_start_runs_after_it(open_work: OpenWork) -> None:
    recording = RecordingWorkflow()
    work = await open_work(recording=recording, starts=False)
    asking = asyncio.create_task(work.enqueue("recording", "a", {"job": "a"}, lane="l"))
    await asyncio.sleep(0)
    await work.start()
    await asking
    assert (await ended(work, "a")).state == "done"


async def test_a_cancelled_start_can_be_closed(open_work: OpenWork) -> None:
    work = await open_work(recording=RecordingWorkflow(), starts=False)
    starting = asyncio.create_task(work.start())
    await asyncio.sleep(0)
    starting.cancel()
    await work.close()
    work = await open_work(recording=RecordingWorkflow())
    await work.enqueue("recording", "a", {"job": "a"}, lane="l")
    assert (await ended(work, "a")).state == "done"


async def test_waiting_callers_get_an_error_at_close(open_work: OpenWork) -> None:
    recording = RecordingWorkflow()
    recording.hold("a.one")
    work = await open_work(recording=recording)
    await work.enqueue("recording", "a", {"job": "a"}, lane="l")
    waiting = [asyncio.create_task(ended(work, "a")) for _ in range(2)]
    await recording.next_begun()
    await work.close()
    for task in waiting:
        with pytest.raises(StorageUnavailable, match="closed"):
            await task


async def test_close_may_be_called_twice(open_work: OpenWork) -> None:
    work = await open_work()
    await work.close()
    await work.close()


@pytest.fixture
async def two_processes(
    open_again: OpenDatabase, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[..., Awaitable[DurableWork]]]:
    """Starts engines that share a journal, as those of several processes do."""
    monkeypatch.setattr(job_runner, "BEAT_SECONDS", 0.05)
    opened: list[tuple[Database, DurableWork]] = []

    async def start(*, works: bool = True, **workflows: Workflow) -> DurableWork:
        database = open_again()
        work = DurableWork(database.journal, changes=database.changes, is_alone=False, grace=0.3)
        opened.append((database, work))
        for name, workflow in workflows.items():
            work.register(name, workflow)
        if works:
            await work.start()
        return work

    yield start
    for database, work in opened:
        await work.close()
        await database.close()


async def test_a_job_enqueued_by_one_process_runs_in_another(
    two_processes: Callable[..., Awaitable[DurableWork]],
) -> None:
    recording = RecordingWorkflow()
    await two_processes(recording=recording)
    server = await two_processes(works=False, recording=recording)
    await server.enqueue("recording", "k", {"job": "a"}, lane="l")
    assert (await ended(server, "k")).result == {"job": "a"}


async def test_two_workers_keep_the_order_of_a_lane_and_share_the_lanes(
    two_processes: Callable[..., Awaitable[DurableWork]],
) -> None:
    first, second = RecordingWorkflow("one", "two"), RecordingWorkflow("one", "two")
    await two_processes(recording=first)
    other = await two_processes(recording=second)
    gate = first.hold("l0.one"), second.hold("l0.one")
    names = [(lane, number) for number in range(4) for lane in "klmnop"]
    for lane, number in names:
        await other.enqueue("recording", f"{lane}{number}", {"job": f"{lane}{number}"}, lane=lane)
    for name in ("k3", "m3", "n3", "o3", "p3"):
        await ended(other, name)
    for held in gate:
        held.set()
    await ended(other, "l3")
    finished = first.finished + second.finished
    assert sorted(finished) == sorted(f"{lane}{number}.{step}" for lane, number in names for step in ("one", "two"))
    for steps in (first.finished, second.finished):
        for lane in "klmnop":
            mine = [step for step in steps if step.startswith(lane)]
            assert mine == sorted(mine)


async def test_a_job_of_a_silent_worker_is_taken_over_and_its_finished_steps_are_kept(
    two_processes: Callable[..., Awaitable[DurableWork]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_tables, "LEASE", 300)
    first, second = RecordingWorkflow("one", "two"), RecordingWorkflow("one", "two")
    first.hold("a.two")
    dying = await two_processes(recording=first)
    await dying.enqueue("recording", "k", {"job": "a"}, lane="l")
    assert [await first.next_begun(), await first.next_begun()] == ["a.one", "a.two"]
    await dying.crash()
    rescuer = await two_processes(recording=second)
    assert (await ended(rescuer, "k")).state == "done"
    assert (first.finished, second.finished) == (["a.one"], ["a.two"])


async def test_a_worker_that_slept_cannot_end_the_job_of_another(
    two_processes: Callable[..., Awaitable[DurableWork]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_tables, "LEASE", 300)
    first, second = RecordingWorkflow("one", "two"), RecordingWorkflow("one", "two")
    asleep, awake = first.hold("a.two"), second.hold("a.two")
    sleeper = await two_processes(recording=first)
    await sleeper.enqueue("recording", "k", {"job": "a"}, lane="l")
    assert [await first.next_begun(), await first.next_begun()] == ["a.one", "a.two"]
    monkeypatch.setattr(sleeper._journal, "beat", _never)  # as after SIGSTOP
    rescuer = await two_processes(recording=second)
    assert await second.next_begun() == "a.two"
    asleep.set()
    while sleeper._running:  # noqa: ASYNC110
        await asyncio.sleep(0)
    job = await rescuer.get("k")
    assert job is not None
    assert job.state == "running"
    awake.set()
    assert await ended(rescuer, "k") == Job("k", "recording", "done", {"job": "a"})


async def _never(worker: str) -> dict[str, State]:
    await asyncio.Event().wait()
    return {}


async def test_a_job_is_cancelled_by_another_process_and_its_lane_goes_on_after_the_step(
    two_processes: Callable[..., Awaitable[DurableWork]],
) -> None:
    recording = RecordingWorkflow("one", "two")
    gate = recording.hold("a.one")
    await two_processes(recording=recording)
    server = await two_processes(works=False, recording=recording)
    await server.enqueue("recording", "a", {"job": "a"}, lane="l")
    await server.enqueue("recording", "b", {"job": "b"}, lane="l")
    assert await recording.next_begun() == "a.one"
    assert await server.cancel("a")
    assert (await ended(server, "a")).state == "cancelled"
    gate.set()
    assert (await ended(server, "b")).state == "done"
    assert recording.finished == ["a.one", "b.one", "b.two"]


async def test_one_process_leads_and_another_takes_over(
    open_again: OpenDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = open_again()
    assert not await database.journal.has_leader()
    assert await database.journal.lead("first")
    assert not await database.journal.lead("second")
    assert await database.journal.lead("first")
    assert await database.journal.has_leader()
    await database.journal.resign("first")
    assert await database.journal.lead("second")
    monkeypatch.setattr(journal_tables, "LEASE", -1)
    assert await database.journal.lead("second")
    assert await database.journal.lead("third"), "the lease of the second has ended"
    await database.close()
