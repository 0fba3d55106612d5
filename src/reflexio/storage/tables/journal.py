"""The journal of durable work: jobs in the order they were enqueued, and the answers of the steps they finished."""

import json
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from sqlalchemy import ColumnElement, Connection, bindparam, delete, exists, insert, literal, select, update

from reflexio.ports.work import ENDED, EnqueuedJob, Job, StepResult
from reflexio.storage.schema import job_answers, jobs

T = TypeVar("T")

_IS_JOB = jobs.c.key == bindparam("which")
_JOB = select(jobs.c.key, jobs.c.name, jobs.c.state, jobs.c.result, jobs.c.error)
_JOB_BY_KEY = _JOB.where(_IS_JOB)
_UNFINISHED = (
    _JOB.add_columns(jobs.c.lane, jobs.c.data, jobs.c.begun)
    .where(jobs.c.state.in_(("queued", "running")))
    .order_by(jobs.c.seq)
)
_ANSWERS = select(job_answers).where(job_answers.c.key.in_(_UNFINISHED.with_only_columns(jobs.c.key).order_by(None)))
_BEGIN = update(jobs).where(_IS_JOB).values(state="running", begun=jobs.c.begun + 1)
_END = update(jobs).where(_IS_JOB, jobs.c.state.not_in(ENDED))
_DROP_ANSWERS = delete(job_answers).where(job_answers.c.key == bindparam("which"))


class ConnectionRunner(Protocol):
    """Runs functions of a connection, each in one transaction."""

    async def read(self, fn: Callable[[Connection], T]) -> T: ...

    async def write(self, fn: Callable[[Connection], T]) -> T: ...


class SqlJournal:
    def __init__(self, database: ConnectionRunner) -> None:
        self._database = database

    async def add(self, request: EnqueuedJob, now: int) -> bool:
        job = request.job
        row = {"key": job.key, "name": job.name, "lane": request.lane, "data": request.data, "state": job.state}

        def add(connection: Connection) -> bool:
            if connection.execute(_JOB_BY_KEY, {"which": job.key}).first():
                return False
            connection.execute(insert(jobs), {**row, "asked_at": now})
            return True

        return await self._database.write(add)

    async def get(self, key: str) -> Job | None:
        row = await self._database.read(lambda connection: connection.execute(_JOB_BY_KEY, {"which": key}).first())
        return _read_job(row) if row else None

    async def unfinished(self) -> list[EnqueuedJob]:
        def read(connection: Connection) -> list[EnqueuedJob]:
            answers: defaultdict[str, dict[str, StepResult]] = defaultdict(dict)
            for row in connection.execute(_ANSWERS):
                answers[row.key][row.step] = StepResult(row.version, row.answer)
            rows = connection.execute(_UNFINISHED)
            return [
                EnqueuedJob(_read_job(row), row.lane, row.data, row.begun, answers.get(row.key, {})) for row in rows
            ]

        return await self._database.read(read)

    async def begin(self, key: str) -> None:
        await self._database.write(lambda connection: connection.execute(_BEGIN, {"which": key}))

    async def answer(self, key: str, step: str, answer: StepResult) -> None:
        # The last step of a job that was cancelled or erased leaves no answer behind.
        values: list[ColumnElement[Any]] = [literal(key), literal(step), literal(answer.version), literal(answer.text)]
        row = select(*values).where(exists().where(jobs.c.key == key, jobs.c.state.not_in(ENDED)))
        added = insert(job_answers).from_select(["key", "step", "version", "answer"], row)
        await self._database.write(lambda connection: connection.execute(added))

    async def end(self, job: Job, now: int) -> None:
        result = None if job.result is None else json.dumps(job.result)

        def end(connection: Connection) -> None:
            values = {"state": job.state, "result": result, "error": job.error, "ended_at": now}
            # Nobody needs these again, and they may name a user.
            values |= {"data": "{}", "lane": ""}
            connection.execute(_END.values(**values), {"which": job.key})
            connection.execute(_DROP_ANSWERS, {"which": job.key})

        await self._database.write(end)

    async def forget(self, before: int, limit: int) -> int:
        old = select(jobs.c.seq).where(jobs.c.state.in_(ENDED), jobs.c.ended_at < before).limit(limit)
        removal = delete(jobs).where(jobs.c.seq.in_(old))
        return await self._database.write(lambda connection: connection.execute(removal).rowcount)


def _read_job(row: Any) -> Job:
    result = None if row.result is None else json.loads(row.result)
    return Job(row.key, row.name, row.state, result, row.error)
