"""Erasures that go on after a crash; what waits is found by its organisation, so that each gets its share."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "unfinished_erasures",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("withdraw_unsupported", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.Column("progress", sa.Text(), nullable=True),
        sa.Column("started_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("org_id", "user_id"),
    )
    op.drop_index("users_unlearned", "users")
    order = ["org_id", "unlearned_since", "user_id"]
    op.create_index("users_waiting", "users", order, sqlite_where=sa.text("unlearned_since > 0"))
    op.drop_index("interactions_unindexed", "interactions")
    unindexed = sa.text("is_indexed = 0")
    op.create_index("interactions_unindexed", "interactions", ["org_id", "id"], sqlite_where=unindexed)
    op.drop_index("unembedded_in_order", "unembedded")
    op.create_index("unembedded_in_order", "unembedded", ["lane", "org_id", "seq"])
