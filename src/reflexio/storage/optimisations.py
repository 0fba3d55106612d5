"""Searches for better wording: jobs, the wordings they tried, how each did, and what happened."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, insert, select, update

from reflexio.models.optimisation import UNFINISHED, PlaybookOptimizationEvent, PlaybookOptimizationJob, TargetKind
from reflexio.models.paging import Listing, Page
from reflexio.ports.storage import Evaluated, Wording
from reflexio.storage.paging import listing
from reflexio.storage.schema import optimisation_candidates as wordings
from reflexio.storage.schema import optimisation_evaluations as evaluations
from reflexio.storage.schema import optimisation_events as events
from reflexio.storage.schema import optimisation_jobs as jobs
from reflexio.storage.upsert import insert_for

COLUMNS = ("target_kind", "target_id", "status", "created_at")


def _row(job: PlaybookOptimizationJob) -> dict[str, Any]:
    document = job.model_dump(mode="json", exclude={"job_id", *COLUMNS})
    return {**{name: getattr(job, name) for name in COLUMNS}, "document": document}


def _read(row: Any) -> PlaybookOptimizationJob:
    columns = {name: getattr(row, name) for name in COLUMNS}
    return PlaybookOptimizationJob(job_id=row.id, **columns, **row.document)


class SqlOptimisations:
    def __init__(self, connection: Connection, org_id: str) -> None:
        self._connection = connection
        self._org = org_id

    def _mine(self, table: Table, *more: ColumnElement[bool]) -> ColumnElement[bool]:
        return and_(table.c.org_id == self._org, *more)

    def add(self, job: PlaybookOptimizationJob) -> PlaybookOptimizationJob:
        made = self._connection.execute(insert(jobs).returning(jobs.c.id), {"org_id": self._org, **_row(job)})
        return job.changed(job_id=int(made.scalar_one()))

    def get(self, job_id: int) -> PlaybookOptimizationJob | None:
        row = self._connection.execute(select(jobs).where(self._mine(jobs, jobs.c.id == job_id))).one_or_none()
        return _read(row) if row else None

    def put(self, job: PlaybookOptimizationJob) -> None:
        mine = self._mine(jobs, jobs.c.id == job.job_id)
        self._connection.execute(update(jobs).where(mine).values(**_row(job)))

    def page(self, page: Page) -> Listing[PlaybookOptimizationJob]:
        return listing(self._connection, select(jobs).where(self._mine(jobs)), jobs, page, _read)

    def of_target(self, kind: TargetKind, target_id: int, limit: int) -> list[PlaybookOptimizationJob]:
        mine = self._mine(jobs, jobs.c.target_kind == kind, jobs.c.target_id == target_id)
        query = select(jobs).where(mine).order_by(jobs.c.id.desc()).limit(limit)
        return [_read(row) for row in self._connection.execute(query)]

    def unfinished(self) -> list[PlaybookOptimizationJob]:
        query = select(jobs).where(self._mine(jobs, jobs.c.status.in_(UNFINISHED))).order_by(jobs.c.id)
        return [_read(row) for row in self._connection.execute(query)]

    def trim(self, keep: int) -> int:
        query = select(jobs.c.id).where(self._mine(jobs, jobs.c.status.not_in(UNFINISHED)))
        old = list(self._connection.execute(query.order_by(jobs.c.id.desc()).offset(keep)).scalars())
        if old:
            for table in (wordings, evaluations, events):
                self._connection.execute(delete(table).where(self._mine(table, table.c.job_id.in_(old))))
            self._connection.execute(delete(jobs).where(self._mine(jobs, jobs.c.id.in_(old))))
        return len(old)

    def keep_wordings(self, job_id: int, made: Sequence[Wording]) -> None:
        names = ("place", "content", "score", "is_winner", "created_at")
        rows = [{**{name: getattr(each, name) for name in names}, "parents": list(each.parents)} for each in made]
        self._keep(wordings, job_id, rows, renew=("content", "parents", "score", "is_winner"))

    def wordings(self, job_id: int) -> list[Wording]:
        query = select(wordings).where(self._mine(wordings, wordings.c.job_id == job_id)).order_by(wordings.c.place)
        return [
            Wording(row.place, row.content, tuple(row.parents), row.score, row.is_winner, row.created_at, row.id)
            for row in self._connection.execute(query)
        ]

    def keep_evaluations(self, job_id: int, made: Sequence[Evaluated]) -> None:
        names = ("place", "scene", "user_id", "document", "created_at")
        self._keep(evaluations, job_id, [{name: getattr(each, name) for name in names} for each in made])

    def evaluations(self, job_id: int) -> list[Evaluated]:
        mine = self._mine(evaluations, evaluations.c.job_id == job_id)
        query = select(evaluations).where(mine).order_by(evaluations.c.id)
        return [
            Evaluated(row.place, row.scene, row.user_id, row.document, row.created_at, row.id)
            for row in self._connection.execute(query)
        ]

    def keep_events(self, job_id: int, told: Sequence[PlaybookOptimizationEvent]) -> None:
        rows = [
            {"number": each.event_id, "type": each.event_type, "payload": each.payload, "created_at": each.created_at}
            for each in told
        ]
        self._keep(events, job_id, rows)

    def events(self, job_id: int) -> list[PlaybookOptimizationEvent]:
        query = select(events).where(self._mine(events, events.c.job_id == job_id)).order_by(events.c.number)
        return [
            PlaybookOptimizationEvent(
                event_id=row.number, job_id=job_id, event_type=row.type, payload=row.payload, created_at=row.created_at
            )
            for row in self._connection.execute(query)
        ]

    def forget_user(self, user_id: str) -> None:
        theirs = self._mine(evaluations, evaluations.c.user_id == user_id)
        self._connection.execute(delete(evaluations).where(theirs))

    def _keep(self, table: Table, job_id: int, rows: list[dict[str, Any]], renew: Sequence[str] = ()) -> None:
        """Once under its unique key. What is in `renew` takes the newest value."""
        if not rows:
            return
        statement = insert_for(self._connection.dialect.name)(table)
        (key,) = [each for each in table.constraints if str(each.name).endswith("_once")]
        once = [column.name for column in key.columns]  # type: ignore[attr-defined]  # a UniqueConstraint
        if renew:
            statement = statement.on_conflict_do_update(
                index_elements=once, set_={name: statement.excluded[name] for name in renew}
            )
        else:
            statement = statement.on_conflict_do_nothing(index_elements=once)
        self._connection.execute(statement, [{"org_id": self._org, "job_id": job_id, **row} for row in rows])
