"""What is special to this engine: a journal that fails, and a process that does not work itself."""

import asyncio

import pytest

from reflexio.engine import job_runner
from reflexio.engine.job_runner import DurableWork
from reflexio.engine.memory import MemoryJournal
from reflexio.errors import NoWorker, StorageFull
from reflexio.ports.work import ClaimedJob, EnqueuedJob, Job, Json, StepResult, Steps, WaitingJob


async def one_step(steps: Steps, data: Json) -> Json:
    async def act() -> Json:
        return {"n": data["n"]}

    return await steps("one", act)


class FullDisk(MemoryJournal):
    """Fails so many times at each kind of write."""

    def __init__(self, *, add: int = 0, answer: int = 0, end: int = 0) -> None:
        super().__init__()
        self.left = {"add": add, "answer": answer, "end": end}

    def _try(self, what: str) -> None:
        if self.left[what]:
            self.left[what] -= 1
            raise StorageFull(path="data.db")

    async def add(self, enqueued: EnqueuedJob, now: int) -> bool:
        self._try("add")
        return await super().add(enqueued, now)

    async def answer(self, claimed: ClaimedJob, step: str, result: StepResult) -> None:
        self._try("answer")
        await super().answer(claimed, step, result)

    async def end(self, claimed: ClaimedJob, job: Job, now: int) -> None:
        self._try("end")
        await super().end(claimed, job, now)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_runner, "PAUSES", (0.0, 0.0))


async def started(work: DurableWork) -> DurableWork:
    work.register("one", one_step)
    await work.start()
    return work


async def test_results_are_written_again_until_the_disk_has_room() -> None:
    journal = FullDisk(answer=2, end=9)
    work = await started(DurableWork(journal))
    await work.enqueue("one", "k", {"n": 1}, lane="l")
    assert await work.wait("k") == Job("k", "one", "done", {"n": 1})
    assert journal.left == {"add": 0, "answer": 0, "end": 0}
    await work.close()


async def test_a_result_that_cannot_be_stored_fails_the_job() -> None:
    work = await started(DurableWork(FullDisk(answer=99)))
    await work.enqueue("one", "k", {"n": 1}, lane="l")
    job = await work.wait("k")
    assert job.state == "failed"
    assert "disk" in job.error
    await work.close()


async def test_a_job_that_could_not_be_stored_is_not_enqueued() -> None:
    work = await started(DurableWork(FullDisk(add=1)))
    with pytest.raises(StorageFull):
        await work.enqueue("one", "k", {"n": 1}, lane="l")
    assert await work.get("k") is None
    await work.enqueue("one", "k", {"n": 1}, lane="l")
    assert (await work.wait("k")).state == "done"
    await work.close()


async def test_callers_are_told_when_nobody_works() -> None:
    async def nobody() -> bool:
        return False

    server = DurableWork(MemoryJournal(), is_working=nobody)
    server.register("one", one_step)
    for call in (server.enqueue("one", "k", {"n": 1}, lane="l"), server.wait("k"), server.ready()):
        with pytest.raises(NoWorker):
            await call
    await server.close()


async def test_a_start_that_fails_can_be_repeated() -> None:
    class Unreadable(MemoryJournal):
        fails = True

        async def adopt(self) -> None:
            if self.fails:
                raise StorageFull(path="data.db")
            await super().adopt()

    journal = Unreadable()
    work = DurableWork(journal)
    with pytest.raises(StorageFull):
        await started(work)
    journal.fails = False
    await work.start()
    await work.enqueue("one", "k", {"n": 1}, lane="l")
    assert (await work.wait("k")).state == "done"
    await work.close()


async def test_a_loop_that_fails_begins_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Odd(MemoryJournal):
        looks = 0

        async def waiting(self, most: int) -> list[WaitingJob]:
            self.looks += 1
            if self.looks == 1:
                raise RuntimeError("a defect")
            return await super().waiting(most)

    monkeypatch.setattr(job_runner, "LOOK_SECONDS", 0.01)
    work = await started(DurableWork(Odd()))
    await work.enqueue("one", "k", {"n": 1}, lane="l")
    assert (await work.wait("k")).state == "done"
    assert "a defect" in caplog.text
    await work.close()


async def test_a_stored_job_runs_although_its_caller_was_cancelled() -> None:
    class Slow(MemoryJournal):
        def __init__(self) -> None:
            super().__init__()
            self.writing, self.go_on = asyncio.Event(), asyncio.Event()

        async def add(self, enqueued: EnqueuedJob, now: int) -> bool:
            self.writing.set()
            await self.go_on.wait()
            return await super().add(enqueued, now)

    journal = Slow()
    work = await started(DurableWork(journal))
    asking = asyncio.create_task(work.enqueue("one", "k", {"n": 1}, lane="l"))
    await journal.writing.wait()
    asking.cancel()
    journal.go_on.set()
    while await work.get("k") is None:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert (await work.wait("k")).state == "done"
    await work.close()


async def test_many_jobs_are_forgotten_in_batches() -> None:
    journal = MemoryJournal()
    for number in range(2500):
        await journal.add(EnqueuedJob(Job(str(number), "one", "queued"), "l", "{}"), 0)
        await journal.cancel(str(number), 5)
    work = DurableWork(journal)
    assert await work.forget(5) == 0
    assert await work.forget(6) == 2500


async def test_a_cancelled_wait_does_not_affect_other_waits() -> None:
    gate = asyncio.Event()

    async def slow(steps: Steps, data: Json) -> Json:
        await gate.wait()
        return {}

    work = DurableWork(MemoryJournal())
    work.register("slow", slow)
    await work.start()
    await work.enqueue("slow", "k", {}, lane="l")
    impatient, patient = asyncio.create_task(work.wait("k")), asyncio.create_task(work.wait("k"))
    await asyncio.sleep(0)
    impatient.cancel()
    gate.set()
    assert (await patient).state == "done"
    await work.close()
