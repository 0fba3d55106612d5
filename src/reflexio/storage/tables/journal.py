"""The journal of durable work: jobs in the order they were enqueued, and the answers of the steps they finished.

Workers of several processes share it. A job is claimed for a lease; what its last claimant alone may write names the
number of the claim.
"""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Any, Protocol, TypeVar

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Text,
    Update,
    and_,
    bindparam,
    cast,
    delete,
    exists,
    extract,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from reflexio.errors import LeaseLost
from reflexio.ports.work import ENDED, LEASE_SECONDS, ClaimedJob, EnqueuedJob, Job, State, StepResult, WaitingJob
from reflexio.storage.queries import insert_for
from reflexio.storage.schema import job_answers, jobs, leases

T = TypeVar("T")

LEASE = round(LEASE_SECONDS * 1000)
SCHEDULES = "schedules"
UNFINISHED = ("queued", "running")
_IS_JOB = jobs.c.key == bindparam("which")
_JOB = select(jobs.c.key, jobs.c.name, jobs.c.state, jobs.c.result, jobs.c.error)
_JOB_BY_KEY = _JOB.where(_IS_JOB)
_DROP_ANSWERS = delete(job_answers).where(job_answers.c.key == bindparam("which"))
# Nobody needs these again, and they may name a user.
_BLANK = {"data": "{}", "lane": "", "organisation": "", "worker": "", "lease_until": 0}
_NOW: BindParameter[int] = bindparam("now")


def _is_leased(rows: Any) -> ColumnElement[bool]:
    """Whether somebody works on a job. A lease that ends too far ahead was given by a clock that was set back since."""
    return and_(rows.c.lease_until > _NOW, rows.c.lease_until <= _NOW + LEASE)


_others = jobs.alias("others")
_is_taken = exists().where(_others.c.lane == jobs.c.lane, _is_leased(_others))
_is_behind = exists().where(_others.c.lane == jobs.c.lane, _others.c.seq < jobs.c.seq, _others.c.state.in_(UNFINISHED))
_IS_FREE = and_(jobs.c.state.in_(UNFINISHED), ~_is_taken, ~_is_behind)
_WAITING = (
    select(jobs.c.key, jobs.c.lane, jobs.c.organisation).where(_IS_FREE).order_by(jobs.c.seq).limit(bindparam("most"))
)
_CLAIMABLE = select(jobs).where(_IS_FREE, jobs.c.key.in_(bindparam("keys", expanding=True))).order_by(jobs.c.seq)
_CLAIM = (
    update(jobs)
    .where(jobs.c.seq == bindparam("number"))
    .values(state="running", worker=bindparam("by"), begun=jobs.c.begun + 1, lease_until=bindparam("until"))
)
_HELD = select(jobs.c.key, jobs.c.state).where(jobs.c.worker == bindparam("by"))
_IS_CLAIMED = and_(_IS_JOB, jobs.c.begun == bindparam("claim"), jobs.c.state == "running")


class ConnectionRunner(Protocol):
    """Runs functions of a connection, each in one transaction."""

    async def read(self, fn: Callable[[Connection], T]) -> T: ...

    async def write(self, fn: Callable[[Connection], T]) -> T: ...


class SqlJournal:
    def __init__(self, database: ConnectionRunner) -> None:
        self._database = database

    async def add(self, enqueued: EnqueuedJob, now: int) -> bool:
        job = enqueued.job
        row = {"key": job.key, "name": job.name, "lane": enqueued.lane, "data": enqueued.data, "state": job.state}
        row["organisation"] = enqueued.organisation

        def add(connection: Connection) -> bool:
            _lock_lane(connection, enqueued.lane)
            added = insert_for(connection.dialect.name)(jobs).on_conflict_do_nothing(index_elements=["key"])
            if connection.execute(added.returning(jobs.c.seq), {**row, "asked_at": now}).first() is None:
                return False
            _notify(connection)
            return True

        return await self._database.write(add)

    async def get(self, key: str) -> Job | None:
        row = await self._database.read(lambda connection: connection.execute(_JOB_BY_KEY, {"which": key}).first())
        return _read_job(row) if row else None

    async def ended(self, keys: Collection[str]) -> list[Job]:
        query = _JOB.where(jobs.c.key.in_(list(keys)), jobs.c.state.in_(ENDED))
        return await self._database.read(lambda connection: [_read_job(row) for row in connection.execute(query)])

    async def waiting(self, most: int) -> list[WaitingJob]:
        def look(connection: Connection) -> list[WaitingJob]:
            rows = connection.execute(_WAITING, {"now": _now(connection), "most": most})
            return [WaitingJob(*row) for row in rows]

        return await self._database.read(look)

    async def claim(self, worker: str, keys: Collection[str]) -> list[ClaimedJob]:
        def claim(connection: Connection) -> list[ClaimedJob]:
            # Of two workers that claim the same job at the same time, the database lets one look again.
            now = _now(connection)
            rows = connection.execute(_CLAIMABLE, {"now": now, "keys": list(keys)}).all()
            if rows:
                claims = [{"number": row.seq, "by": worker, "until": now + LEASE} for row in rows]
                connection.execute(_CLAIM, claims)
            results = _results(connection, [row.key for row in rows])
            return [
                ClaimedJob(Job(row.key, row.name, "running"), row.data, row.begun + 1, results[row.key]) for row in rows
            ]

        return await self._database.write(claim)

    async def beat(self, worker: str) -> dict[str, State]:
        def beat(connection: Connection) -> dict[str, State]:
            until = _now(connection) + LEASE
            connection.execute(update(jobs).where(jobs.c.worker == worker).values(lease_until=until))
            return {row.key: row.state for row in connection.execute(_HELD, {"by": worker})}

        return await self._database.write(beat)

    async def answer(self, claimed: ClaimedJob, step: str, result: StepResult) -> None:
        row = {"key": claimed.job.key, "step": step, "version": result.version, "answer": result.text}

        def answer(connection: Connection) -> None:
            # The row is changed, not only read, so that no other transaction takes the job at the same time.
            _change_claimed(connection, claimed, update(jobs).values(begun=jobs.c.begun))
            connection.execute(insert(job_answers), row)

        await self._database.write(answer)

    async def end(self, claimed: ClaimedJob, job: Job, now: int) -> None:
        result = None if job.result is None else json.dumps(job.result)
        values = {"state": job.state, "result": result, "error": job.error, "ended_at": now, **_BLANK}

        def end(connection: Connection) -> None:
            _change_claimed(connection, claimed, update(jobs).values(**values))
            connection.execute(_DROP_ANSWERS, {"which": job.key})
            _notify(connection)

        await self._database.write(end)

    async def cancel(self, key: str, now: int) -> bool:
        def cancel(connection: Connection) -> bool:
            # The lane stays, and the lease: the next job waits for the running step.
            change = update(jobs).where(_IS_JOB, jobs.c.state.in_(UNFINISHED))
            change = change.values(state="cancelled", ended_at=now, data="{}")
            if not connection.execute(change, {"which": key}).rowcount:
                return False
            connection.execute(_DROP_ANSWERS, {"which": key})
            _blank_cancelled(connection, jobs.c.key == key, jobs.c.worker == "")
            _notify(connection)
            return True

        return await self._database.write(cancel)

    async def free_lane(self, claimed: ClaimedJob) -> None:
        own = jobs.c.key == claimed.job.key, jobs.c.begun == claimed.claim

        def free(connection: Connection) -> None:
            _blank_cancelled(connection, *own)
            _notify(connection)

        await self._database.write(free)

    async def give_back(self, worker: str) -> None:
        await self._give_back(jobs.c.worker == worker)

    async def adopt(self) -> None:
        await self._give_back(jobs.c.worker != "")

    async def _give_back(self, which: ColumnElement[bool]) -> None:
        def give_back(connection: Connection) -> None:
            _blank_cancelled(connection, which)
            connection.execute(update(jobs).where(which).values(worker="", lease_until=0))
            _notify(connection)

        held = select(jobs.c.seq).where(which).limit(1)
        if await self._database.read(lambda connection: connection.execute(held).first()):
            await self._database.write(give_back)

    async def lead(self, holder: str) -> bool:
        """Takes or renews the lease of the schedules; False while another process holds it."""

        def lead(connection: Connection) -> bool:
            now = _now(connection)
            row = {"name": SCHEDULES, "holder": holder, "lease_until": now + LEASE}
            statement = insert_for(connection.dialect.name)(leases)
            is_free = or_(leases.c.holder == holder, ~_is_leased(leases))
            change = {name: statement.excluded[name] for name in ("holder", "lease_until")}
            taken = statement.on_conflict_do_update(index_elements=["name"], set_=change, where=is_free)
            return connection.execute(taken.returning(leases.c.name), {**row, "now": now}).first() is not None

        return await self._database.write(lead)

    async def has_leader(self) -> bool:
        query = select(leases.c.name).where(leases.c.name == SCHEDULES, _is_leased(leases))
        return await self._database.read(
            lambda connection: connection.execute(query, {"now": _now(connection)}).first() is not None
        )

    async def resign(self, holder: str) -> None:
        own = delete(leases).where(leases.c.name == SCHEDULES, leases.c.holder == holder)
        await self._database.write(lambda connection: connection.execute(own))

    async def forget(self, before: int, limit: int) -> int:
        old = select(jobs.c.seq).where(jobs.c.state.in_(ENDED), jobs.c.ended_at < before).limit(limit)
        removal = delete(jobs).where(jobs.c.seq.in_(old))
        return await self._database.write(lambda connection: connection.execute(removal).rowcount)


def _results(connection: Connection, keys: list[str]) -> defaultdict[str, dict[str, StepResult]]:
    results: defaultdict[str, dict[str, StepResult]] = defaultdict(dict)
    for row in connection.execute(select(job_answers).where(job_answers.c.key.in_(keys))):
        results[row.key][row.step] = StepResult(row.version, row.answer)
    return results


def _change_claimed(connection: Connection, claimed: ClaimedJob, change: Update) -> None:
    """Changes the row of a job. Raises LeaseLost when it was claimed again or has ended."""
    named = {"which": claimed.job.key, "claim": claimed.claim}
    if not connection.execute(change.where(_IS_CLAIMED), named).rowcount:
        raise LeaseLost


def _blank_cancelled(connection: Connection, *which: ColumnElement[bool]) -> None:
    connection.execute(update(jobs).where(*which, jobs.c.state.in_(ENDED)).values(**_BLANK))


def _now(connection: Connection) -> int:
    """Milliseconds: of the database's clock where machines share it, else of the clock that nobody sets."""
    if connection.dialect.name == "postgresql":
        seconds = connection.execute(select(extract("epoch", func.clock_timestamp()))).scalar_one()
        return int(seconds * 1000)
    return int(time.monotonic() * 1000)


def _lock_lane(connection: Connection, lane: str) -> None:
    """Numbers of one lane must become visible in their order, or a later job could begin before an earlier one."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(cast(literal(lane), Text), 0))))


def _notify(connection: Connection) -> None:
    """Wakes those who wait, in all processes, when this transaction is committed."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_notify("reflexio", "")))


def _read_job(row: Any) -> Job:
    result = None if row.result is None else json.loads(row.result)
    return Job(row.key, row.name, row.state, result, row.error)
