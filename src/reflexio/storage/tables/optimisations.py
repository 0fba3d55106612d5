"""Optimisation jobs: the candidates that each job tried, how each candidate did, and what happened."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, UniqueConstraint, and_, delete, insert, select, update

from reflexio.models.optimisation import UNFINISHED, PlaybookOptimizationEvent, PlaybookOptimizationJob, TargetKind
from reflexio.models.paging import Listing, Page
from reflexio.ports.storage import StoredCandidate, StoredEvaluation
from reflexio.storage.queries import OrganisationRows, attributes, in_batches, insert_for
from reflexio.storage.schema import optimisation_candidates as candidates
from reflexio.storage.schema import optimisation_evaluations as evaluations
from reflexio.storage.schema import optimisation_events as events
from reflexio.storage.schema import optimisation_jobs as jobs

JOB_FIELDS = ("target_kind", "target_id", "status", "created_at")
CANDIDATE_FIELDS = ("place", "content", "score", "is_winner", "created_at")
EVALUATION_FIELDS = ("place", "scene", "user_id", "document", "created_at")


def _row(job: PlaybookOptimizationJob) -> dict[str, Any]:
    document = job.model_dump(mode="json", exclude={"job_id", *JOB_FIELDS})
    return {**attributes(job, JOB_FIELDS), "document": document}


def _read_job(row: Any) -> PlaybookOptimizationJob:
    return PlaybookOptimizationJob(job_id=row.id, **attributes(row, JOB_FIELDS), **row.document)


def remove_optimisations(connection: Connection, org_id: str, kind: str, target_ids: Sequence[int]) -> None:
    """Removes the jobs about removed playbooks: their wordings, and how the wordings did."""
    for batch in in_batches(target_ids):
        about = and_(jobs.c.org_id == org_id, jobs.c.target_kind == kind, jobs.c.target_id.in_(batch))
        if job_ids := list(connection.execute(select(jobs.c.id).where(about)).scalars()):
            for table in (candidates, evaluations, events):
                connection.execute(delete(table).where(table.c.org_id == org_id, table.c.job_id.in_(job_ids)))
            connection.execute(delete(jobs).where(about))


class SqlOptimisations(OrganisationRows):
    def _where(self, table: Table, *where: ColumnElement[bool]) -> ColumnElement[bool]:
        return and_(table.c.org_id == self._org, *where)

    def _jobs(self, *where: ColumnElement[bool]) -> Select[Any]:
        return select(jobs).where(self._where(jobs, *where))

    def _of_job(self, table: Table, job_id: int, order: str) -> Select[Any]:
        return select(table).where(self._where(table, table.c.job_id == job_id)).order_by(table.c[order])

    def add(self, job: PlaybookOptimizationJob) -> PlaybookOptimizationJob:
        added = self._connection.execute(insert(jobs).returning(jobs.c.id), {"org_id": self._org, **_row(job)})
        return job.changed(job_id=int(added.scalar_one()))

    def get(self, job_id: int) -> PlaybookOptimizationJob | None:
        return self._one(self._jobs(jobs.c.id == job_id), _read_job)

    def put(self, job: PlaybookOptimizationJob) -> None:
        self._change(update(jobs).where(self._where(jobs, jobs.c.id == job.job_id)).values(**_row(job)))

    def page(self, page: Page) -> Listing[PlaybookOptimizationJob]:
        return self._page(self._jobs(), jobs, page, _read_job)

    def of_target(self, kind: TargetKind, target_id: int, limit: int) -> list[PlaybookOptimizationJob]:
        query = self._jobs(jobs.c.target_kind == kind, jobs.c.target_id == target_id)
        return self._rows(query.order_by(jobs.c.id.desc()).limit(limit), _read_job)

    def unfinished(self) -> list[PlaybookOptimizationJob]:
        return self._rows(self._jobs(jobs.c.status.in_(UNFINISHED)).order_by(jobs.c.id), _read_job)

    def trim(self, keep: int) -> int:
        query = select(jobs.c.id).where(self._where(jobs, jobs.c.status.not_in(UNFINISHED)))
        old = self._scalars(query.order_by(jobs.c.id.desc()).offset(keep))
        if old:
            for table in (candidates, evaluations, events):
                self._change(delete(table).where(self._where(table, table.c.job_id.in_(old))))
            self._change(delete(jobs).where(self._where(jobs, jobs.c.id.in_(old))))
        return len(old)

    def keep_wordings(self, job_id: int, wordings: Sequence[StoredCandidate]) -> None:
        rows = [{**attributes(wording, CANDIDATE_FIELDS), "parents": list(wording.parents)} for wording in wordings]
        self._keep(candidates, job_id, rows, updated=("content", "parents", "score", "is_winner"))

    def wordings(self, job_id: int) -> list[StoredCandidate]:
        return self._rows(
            self._of_job(candidates, job_id, "place"),
            lambda row: StoredCandidate(id=row.id, parents=tuple(row.parents), **attributes(row, CANDIDATE_FIELDS)),
        )

    def keep_evaluations(self, job_id: int, evaluated: Sequence[StoredEvaluation]) -> None:
        self._keep(evaluations, job_id, [attributes(evaluation, EVALUATION_FIELDS) for evaluation in evaluated])

    def evaluations(self, job_id: int) -> list[StoredEvaluation]:
        return self._rows(
            self._of_job(evaluations, job_id, "id"),
            lambda row: StoredEvaluation(id=row.id, **attributes(row, EVALUATION_FIELDS)),
        )

    def keep_events(self, job_id: int, happened: Sequence[PlaybookOptimizationEvent]) -> None:
        rows = [
            {"number": event.event_id, "type": event.event_type, **attributes(event, ("payload", "created_at"))}
            for event in happened
        ]
        self._keep(events, job_id, rows)

    def events(self, job_id: int) -> list[PlaybookOptimizationEvent]:
        return self._rows(
            self._of_job(events, job_id, "number"),
            lambda row: PlaybookOptimizationEvent(
                event_id=row.number, job_id=job_id, event_type=row.type, payload=row.payload, created_at=row.created_at
            ),
        )

    def _keep(self, table: Table, job_id: int, rows: list[dict[str, Any]], updated: Sequence[str] = ()) -> None:
        """Stores each row once under its unique key. The columns `updated` of a stored row take the new values."""
        if not rows:
            return
        statement = insert_for(self._connection.dialect.name)(table)
        (key,) = [constraint for constraint in table.constraints if isinstance(constraint, UniqueConstraint)]
        unique = [column.name for column in key.columns]
        if updated:
            new_values = {name: statement.excluded[name] for name in updated}
            statement = statement.on_conflict_do_update(index_elements=unique, set_=new_values)
        else:
            statement = statement.on_conflict_do_nothing(index_elements=unique)
        self._connection.execute(statement, [{"org_id": self._org, "job_id": job_id, **row} for row in rows])
