"""Which learnings were in the prompt of which turns."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
BATCH = 2_000


def upgrade() -> None:
    exposures = op.create_table(
        "exposures",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("public_id", sa.Text(), nullable=False),
        sa.Column("interaction_id", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("org_id", "kind", "public_id", "interaction_id"),
    )
    op.create_index("exposures_of_turn", "exposures", ["interaction_id"], unique=False)
    op.create_index("exposures_of_user", "exposures", ["org_id", "user_id"], unique=False)
    _read_turns(op.get_bind(), exposures)


def _read_turns(connection: sa.Connection, exposures: sa.Table) -> None:
    """The turns that are indexed already; the indexer reads the others."""
    turns = sa.table("interactions", *map(sa.column, ("id", "org_id", "user_id", "retrieved_learnings", "is_indexed")))
    known = turns.c.retrieved_learnings.is_not(None) & turns.c.is_indexed
    query = sa.select(turns.c.id, turns.c.org_id, turns.c.user_id, turns.c.retrieved_learnings).order_by(turns.c.id)
    last = 0
    while rows := connection.execute(query.where(known, turns.c.id > last).limit(BATCH)).all():
        last = rows[-1].id
        # A turn may name a learning twice.
        new = {tuple(row.values()): row for turn in rows for row in _exposures(turn)}
        if new:
            connection.execute(sa.insert(exposures), list(new.values()))


def _exposures(turn: Any) -> list[dict[str, Any]]:
    own = {"org_id": turn.org_id, "user_id": turn.user_id, "interaction_id": turn.id}
    shown = json.loads(turn.retrieved_learnings) or []
    return [{**own, "kind": entry["kind"], "public_id": entry["learning_id"]} for entry in shown]
