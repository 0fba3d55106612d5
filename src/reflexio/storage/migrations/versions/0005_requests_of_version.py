"""Requests of one agent version, newest first."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    columns = ["org_id", "agent_version", "created_at", "id"]
    op.create_index("requests_of_version", "requests", columns, unique=False)
