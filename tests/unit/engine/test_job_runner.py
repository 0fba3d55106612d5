"""What is special to this engine: a journal that fails, and the process lock."""

import asyncio
from pathlib import Path

import pytest

from reflexio.engine import job_runner
from reflexio.engine.job_runner import DurableWork
from reflexio.engine.memory import MemoryJournal
from reflexio.engine.process_lock import ProcessLock
from reflexio.errors import StorageFull, StorageReadOnly, StorageTaken
from reflexio.ports.work import EnqueuedJob, Job, Json, StepResult, Steps


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

    async def answer(self, key: str, step: str, result: StepResult) -> None:
        self._try("answer")
        await super().answer(key, step, result)

    async def end(self, job: Job, now: int) -> None:
        self._try("end")
        await super().end(job, now)


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


async def test_calls_fail_while_another_process_holds_the_lock(tmp_path: Path) -> None:
    first = await started(DurableWork(MemoryJournal(), process_lock=lambda: ProcessLock(tmp_path / "lock")))
    second = DurableWork(MemoryJournal(), process_lock=lambda: ProcessLock(tmp_path / "lock", timeout=0))
    with pytest.raises(StorageTaken):
        await started(second)
    with pytest.raises(StorageTaken):
        await second.enqueue("one", "k", {"n": 1}, lane="l")
    with pytest.raises(StorageTaken):
        await second.wait("k")
    await first.close()
    await second.start()
    await second.enqueue("one", "k", {"n": 1}, lane="l")
    assert (await second.wait("k")).state == "done"
    await second.close()


async def test_a_failed_start_releases_the_lock_and_can_be_repeated(tmp_path: Path) -> None:
    class Unreadable(MemoryJournal):
        fails = True

        async def unfinished(self) -> list[EnqueuedJob]:
            if self.fails:
                raise StorageFull(path="data.db")
            return await super().unfinished()

    journal = Unreadable()
    work = DurableWork(journal, process_lock=lambda: ProcessLock(tmp_path / "lock", timeout=0))
    with pytest.raises(StorageFull):
        await started(work)
    journal.fails = False
    await work.start()
    await work.enqueue("one", "k", {"n": 1}, lane="l")
    assert (await work.wait("k")).state == "done"
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
    assert (await work.wait("k")).state == "done"
    await work.close()


async def test_a_folder_that_cannot_be_written_raises_storage_read_only(tmp_path: Path) -> None:
    with pytest.raises(StorageReadOnly):
        await started(DurableWork(MemoryJournal(), process_lock=lambda: ProcessLock(tmp_path / "none" / "lock")))


async def test_many_jobs_are_forgotten_in_batches() -> None:
    journal = MemoryJournal()
    for number in range(2500):
        await journal.add(EnqueuedJob(Job(str(number), "one", "queued"), "l", "{}"), 0)
        await journal.end(Job(str(number), "one", "done"), 5)
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
