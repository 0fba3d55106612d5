"""Requests of one session of one user, whose name other users may share; and windows that were set aside."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    columns = ["org_id", "user_id", "session_id", "created_at", "id"]
    op.create_index("requests_of_user_session", "requests", columns, unique=False)
    is_set_aside = sa.text("state = 'set_aside'")
    op.create_index("windows_set_aside", "windows", ["org_id", "created_at"], unique=False, sqlite_where=is_set_aside)
