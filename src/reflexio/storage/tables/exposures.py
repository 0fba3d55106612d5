"""Which learnings were in the prompt of which turns: written by the indexer, removed with the turn or the learning."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, and_, delete, func, select

from reflexio.models.learning import Kind
from reflexio.storage.queries import OrganisationRows, in_batches, insert_for
from reflexio.storage.schema import exposures, interactions


class SqlExposures(OrganisationRows):
    def counts(self, kind: Kind, public_ids: Sequence[str], most: int) -> dict[str, int]:
        counts = {}
        for public_id in public_ids:
            few = select(exposures.c.interaction_id).where(self._of(kind, public_id)).limit(most).subquery()
            counts[public_id] = int(self._connection.execute(select(func.count()).select_from(few)).scalar_one())
        return {public_id: count for public_id, count in counts.items() if count}

    def newest(self, kind: Kind, public_id: str, limit: int) -> list[int]:
        query = select(exposures.c.interaction_id).where(self._of(kind, public_id))
        return self._scalars(query.order_by(exposures.c.interaction_id.desc()).limit(limit))

    def _of(self, kind: Kind, public_id: str) -> Any:
        named = exposures.c.kind == kind.value, exposures.c.public_id == public_id
        return and_(exposures.c.org_id == self._org, *named)


def add_exposures(connection: Connection, turn_ids: Collection[int]) -> None:
    """Reads from these turns what was in their prompts. A turn that is read twice counts once."""
    column = interactions.c
    shown = select(column.id, column.org_id, column.user_id, column.retrieved_learnings)
    for batch in in_batches(sorted(turn_ids)):
        where = column.id.in_(batch), column.retrieved_learnings.is_not(None)
        if rows := list(exposure_rows(connection.execute(shown.where(*where)))):
            connection.execute(insert_for(connection.dialect.name)(exposures).on_conflict_do_nothing(), rows)


def exposure_rows(turns: Iterable[Any]) -> Iterable[dict[str, Any]]:
    """One row for each learning in the prompt of each turn."""
    for turn in turns:
        own = {"org_id": turn.org_id, "user_id": turn.user_id, "interaction_id": turn.id}
        for shown in turn.retrieved_learnings or ():
            yield {**own, "kind": shown["kind"], "public_id": shown["learning_id"]}


def forget_turns(connection: Connection, turn_ids: Sequence[int]) -> None:
    for batch in in_batches(turn_ids):
        connection.execute(delete(exposures).where(exposures.c.interaction_id.in_(batch)))


def forget_learnings(connection: Connection, org_id: str, kind: Kind, public_ids: Sequence[str]) -> None:
    own = exposures.c.org_id == org_id, exposures.c.kind == kind.value
    for batch in in_batches(public_ids, 1_000):
        connection.execute(delete(exposures).where(*own, exposures.c.public_id.in_(batch)))
