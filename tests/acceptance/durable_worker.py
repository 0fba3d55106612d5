"""A process that works durably until it is killed. Run by test_durable_work.py.

It asks for its jobs, does them, writes down each step that begins and ends, and stands still at the moment that it
was told, where it waits for `kill -9`.
"""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from reflexio.engine.job_runner import DurableWork
from reflexio.engine.process_lock import ProcessLock
from reflexio.errors import StorageTaken
from reflexio.ports.work import Json, Steps
from reflexio.storage.sqlite import open_sqlite

STEPS = ("one", "two", "three")


class Worker:
    def __init__(self, folder: Path, moment: str) -> None:
        self._moment = moment
        self._log = os.open(folder / "steps.log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def note(self, *words: str) -> None:
        os.write(self._log, (" ".join(words) + "\n").encode())

    async def reach(self, moment: str) -> None:
        if moment == self._moment:
            print(f"reached {moment}", flush=True)
            await asyncio.Event().wait()

    async def workflow(self, steps: Steps, data: Json) -> Json:
        job, said = data["job"], list[str]()
        for step in STEPS:
            await self.reach(f"before {job} {step}")
            said.append((await steps(step, lambda step=step: self.act(job, step)))["said"])  # type: ignore[misc]
        await self.reach(f"after {job}")
        return {"said": said}

    async def act(self, job: str, step: str) -> Json:
        self.note("begin", job, step)
        await self.reach(f"inside {job} {step}")
        self.note("end", job, step)
        return {"said": f"{job} {step}"}


async def main(folder: Path, moment: str, deaths: int, jobs: Sequence[str]) -> None:
    """Each job is `name@lane`."""
    worker, database = Worker(folder, moment), open_sqlite(folder / "data.db")
    work = DurableWork(database.journal, changes=database.changes, crashes=deaths)
    work.register("workflow", worker.workflow)
    lock = ProcessLock(folder / "work.lock", timeout=0.2)
    try:
        lock.__enter__()
        await work.start()
    except StorageTaken as taken:
        print(f"taken: {taken}", flush=True)
        await database.close()
        return
    names = [job.partition("@")[0] for job in jobs]
    for job in jobs:
        name, _, lane = job.partition("@")
        await work.enqueue("workflow", name, {"job": name}, lane=lane)
    print("asked", flush=True)
    await worker.reach("asked")
    for name in names:
        job_ = await work.wait(name)
        print(f"{name} {job_.state} {(job_.result or {}).get('said')}", flush=True)
    await work.close()
    lock.__exit__()
    await database.close()
    print("closed", flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:]))
