"""What must be true of the rows after any crash: queries that count the rows for which it is not."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Executable, Select, and_, exists, func, select
from sqlalchemy import text as sql

from reflexio.storage import schema
from reflexio.storage.tables.embeddings import TURN


def _count(rows: Any, *conditions: ColumnElement[bool]) -> Select[Any]:
    return select(func.count()).select_from(rows).where(*conditions)


def _without_row(queue: Any) -> ColumnElement[bool]:
    turn = exists().where(schema.interactions.c.id == queue.c.row_id)
    learning = exists().where(schema.learnings.c.id == queue.c.row_id)
    return and_(queue.c.kind == TURN, ~turn) | and_(queue.c.kind != TURN, ~learning)


def _without_optimisation(rows: Any) -> ColumnElement[bool]:
    job = schema.optimisation_jobs.c
    return ~exists().where(job.org_id == rows.c.org_id, job.id == rows.c.job_id)


_turn, _request, _user = schema.interactions.c, schema.requests.c, schema.users.c
_is_waiting = exists().where(_user.org_id == _turn.org_id, _user.user_id == _turn.user_id, _user.unlearned_since > 0)
_has_request = exists().where(_request.org_id == _turn.org_id, _request.request_id == _turn.request_id)
_has_job = exists().where(schema.jobs.c.key == schema.job_answers.c.key)
BROKEN_ROWS: dict[str, Executable] = {
    "turns whose request is missing": _count(schema.interactions, ~_has_request),
    "turns that learning has forgotten": _count(schema.interactions, ~_turn.is_learned, ~_is_waiting),
    "vectors of missing rows": _count(
        schema.vectors, schema.vectors.c.vector.is_not(None), _without_row(schema.vectors)
    ),
    "missing rows that wait for a vector": _count(schema.unembedded, _without_row(schema.unembedded)),
    "results of steps without a job": _count(schema.job_answers, ~_has_job),
    "candidates without a job": _count(
        schema.optimisation_candidates, _without_optimisation(schema.optimisation_candidates)
    ),
    "evaluations without a job": _count(
        schema.optimisation_evaluations, _without_optimisation(schema.optimisation_evaluations)
    ),
    "events without a job": _count(schema.optimisation_events, _without_optimisation(schema.optimisation_events)),
    **{
        f"words of missing rows ({entity})": sql(
            f"SELECT count(*) FROM {entity}_words WHERE id NOT IN (SELECT id FROM {rows.name})"  # noqa: S608
        )
        for entity, rows in ((TURN, schema.interactions), ("learning", schema.learnings))
    },
    **{
        f"scopes whose statistics are wrong ({entity})": sql(
            # On PostgreSQL a scope has several rows of sizes.
            f"SELECT count(*) FROM (SELECT scope, sum(row_count) AS row_count FROM {entity}_words_size"  # noqa: S608
            " GROUP BY scope) AS size WHERE row_count <> (SELECT count(*)"
            f" FROM {entity}_words AS words WHERE words.user_scope = size.scope OR words.scope = size.scope)"
        )
        for entity in schema.FULLTEXT_ENTITIES
    },
}
"""For each thing that must not be, the query that counts it."""


def broken_invariants(connection: Connection) -> list[str]:
    """What is not as it must be, each with its number of rows."""
    counts = {problem: connection.execute(query).scalar_one() for problem, query in BROKEN_ROWS.items()}
    return [f"{count} {problem}" for problem, count in counts.items() if count]
