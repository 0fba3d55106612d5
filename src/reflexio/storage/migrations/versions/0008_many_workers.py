"""Leases of jobs and of the schedules, so that several processes share them; users whom a waiting caller reserves."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("worker", sa.Text(), server_default="", nullable=False))
    op.add_column("jobs", sa.Column("lease_until", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("jobs", sa.Column("organisation", sa.Text(), server_default="", nullable=False))
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "UPDATE jobs SET organisation = coalesce(json_extract(data, '$.org_id'), '')"
            " WHERE state IN ('queued', 'running') AND json_valid(data)"
        )
    op.create_index("jobs_of_lane", "jobs", ["lane", "seq"])
    op.create_index("jobs_of_worker", "jobs", ["worker"])
    op.create_table(
        "leases",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("lease_until", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "index_counts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("count", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.add_column("users", sa.Column("reserved_until", sa.BigInteger(), server_default="0", nullable=False))
