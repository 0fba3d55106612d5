"""Scopes of learnings and keys, turns not understood, support of clusters, estimated tokens, receipts of erasures."""

import sqlalchemy as sa
from alembic import op

from reflexio.language.standing import fact_holds_always, instruction_holds_always

revision = "0002"
down_revision = "0001"
BATCH = 1_000
FORMER_TRIGGER = "The user asks for anything"
"""What the local learner wrote for orders that hold whatever is asked."""


def upgrade() -> None:
    op.add_column("learnings", sa.Column("scope", sa.Text(), server_default="", nullable=False))
    op.create_index(
        "learnings_of_scope", "learnings", ["org_id", "kind", "scope", "user_id", "created_at", "id"], unique=False
    )
    for name in ("profiles_unread", "playbooks_unread"):
        op.add_column("interactions", sa.Column(name, sa.Boolean(), server_default=sa.false(), nullable=False))
    op.create_index(
        "interactions_unread",
        "interactions",
        ["org_id", "user_id", "id", "profiles_unread", "playbooks_unread"],
        sqlite_where=sa.text("profiles_unread = 1 OR playbooks_unread = 1"),
    )
    op.add_column("requests", sa.Column("redacted_count", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("spend", sa.Column("estimated_calls", sa.Integer(), server_default="0", nullable=False))
    for column in ("statements", "users"):
        op.add_column("clusters", sa.Column(column, sa.BigInteger(), server_default="0", nullable=False))
    _erasures()
    # An upper bound, made exact when the cluster is next read.
    op.execute("UPDATE clusters SET statements = size, users = size")
    for column in ("scopes", "owner"):
        op.add_column("keys", sa.Column(column, sa.Text(), server_default="", nullable=False))
    # Keys that people have go on doing all that they could.
    op.execute("UPDATE keys SET scopes = 'publish,read,review,admin'")
    _decide_scopes(op.get_bind())


def _erasures() -> None:
    op.create_table(
        "erasures",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("org_id", "digest"),
    )
    op.add_column("receipts", sa.Column("user_id", sa.Text(), server_default="", nullable=False))
    op.create_index("receipts_of_user", "receipts", ["org_id", "user_id"])
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "UPDATE receipts SET user_id = coalesce((SELECT user_id FROM requests WHERE requests.org_id ="
            " receipts.org_id AND requests.request_id = json_extract(receipts.answer, '$.request_id')), '')"
        )


def _decide_scopes(connection: sa.Connection) -> None:
    """Stored learnings get a scope by their words. The trigger that standing orders had is removed: they have none.

    Its words stay in the vector and in the full-text index of such a row until the row is changed. They are the same in
    all of these rows ("the user asks for anything"), so they tell none of them apart.
    """
    learnings = sa.table("learnings", *map(sa.column, ("id", "kind", "trigger", "content", "scope")))
    last = 0
    query = sa.select(learnings.c.id, learnings.c.kind, learnings.c.trigger, learnings.c.content)
    values_of_row: dict[str, sa.BindParameter[str]] = {"scope": sa.bindparam("to"), "trigger": sa.bindparam("when")}
    change = sa.update(learnings).where(learnings.c.id == sa.bindparam("row")).values(values_of_row)
    while rows := connection.execute(query.where(learnings.c.id > last).order_by(learnings.c.id).limit(BATCH)).all():
        values = [
            {
                "row": row.id,
                "to": _scope(row.kind, row.trigger, row.content),
                "when": "" if row.trigger == FORMER_TRIGGER else row.trigger,
            }
            for row in rows
        ]
        connection.execute(change, values)
        last = rows[-1].id


def _scope(kind: str, trigger: str, content: str) -> str:
    if kind == "profile":
        return "always" if fact_holds_always(content) else "when_relevant"
    always = instruction_holds_always(trigger, content)
    return "always" if always else "when_relevant"
