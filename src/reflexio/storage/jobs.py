"""The journal of durable work: jobs in the order asked for, and the answers of the steps that they have finished."""

import json
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from reflexio.ports.work import ENDED, EnqueuedJob, Job, StepResult
from reflexio.storage.schema import job_answers, jobs

T = TypeVar("T")
UNDER_WAY = ("queued", "running")

_ADD = insert(jobs)
_GET = select(jobs.c.key, jobs.c.name, jobs.c.state, jobs.c.result, jobs.c.error)
_ONE = _GET.where(jobs.c.key == bindparam("which"))
_LEFT = _GET.add_columns(jobs.c.lane, jobs.c.data, jobs.c.begun).where(jobs.c.state.in_(UNDER_WAY)).order_by(jobs.c.seq)
_BEGIN = update(jobs).where(jobs.c.key == bindparam("which")).values(state="running", begun=jobs.c.begun + 1)
_END = update(jobs).where(jobs.c.key == bindparam("which"), jobs.c.state.not_in(ENDED))
_ANSWER = insert(job_answers)
_ANSWERS = select(job_answers).where(job_answers.c.key.in_(_LEFT.with_only_columns(jobs.c.key).order_by(None)))
_DROP = delete(job_answers).where(job_answers.c.key == bindparam("which"))


class Backend(Protocol):
    async def read(self, fn: Callable[[Connection], T]) -> T: ...

    async def write(self, fn: Callable[[Connection], T]) -> T: ...


class SqlJournal:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def add(self, asked: EnqueuedJob, now: int) -> bool:
        job = asked.job
        row = {"key": job.key, "name": job.name, "lane": asked.lane, "data": asked.data, "state": job.state}

        def add(connection: Connection) -> bool:
            if connection.execute(_ONE, {"which": job.key}).first():
                return False
            connection.execute(_ADD, {**row, "asked_at": now})
            return True

        return await self._backend.write(add)

    async def get(self, key: str) -> Job | None:
        row = await self._backend.read(lambda connection: connection.execute(_ONE, {"which": key}).first())
        return _job(row) if row else None

    async def unfinished(self) -> list[EnqueuedJob]:
        def look(connection: Connection) -> list[EnqueuedJob]:
            answers: defaultdict[str, dict[str, StepResult]] = defaultdict(dict)
            for each in connection.execute(_ANSWERS):
                answers[each.key][each.step] = StepResult(each.version, each.answer)
            rows = connection.execute(_LEFT)
            return [EnqueuedJob(_job(row), row.lane, row.data, row.begun, answers.get(row.key, {})) for row in rows]

        return await self._backend.read(look)

    async def begin(self, key: str) -> None:
        await self._backend.write(lambda connection: connection.execute(_BEGIN, {"which": key}))

    async def answer(self, key: str, step: str, answer: StepResult) -> None:
        row = {"key": key, "step": step, "version": answer.version, "answer": answer.text}
        await self._backend.write(lambda connection: connection.execute(_ANSWER, row))

    async def end(self, job: Job, now: int) -> None:
        result = None if job.result is None else json.dumps(job.result)

        def end(connection: Connection) -> None:
            values = {"state": job.state, "result": result, "error": job.error, "ended_at": now}
            connection.execute(_END.values(**values), {"which": job.key})
            connection.execute(_DROP, {"which": job.key})

        await self._backend.write(end)

    async def forget(self, before: int, limit: int) -> int:
        old = select(jobs.c.seq).where(jobs.c.state.in_(ENDED), jobs.c.ended_at < before).limit(limit)
        done = delete(jobs).where(jobs.c.seq.in_(old))
        return await self._backend.write(lambda connection: connection.execute(done).rowcount)


def _job(row: Any) -> Job:
    result = None if row.result is None else json.loads(row.result)
    return Job(row.key, row.name, row.state, result, row.error)
