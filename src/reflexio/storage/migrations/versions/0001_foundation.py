"""Requests, interactions, learnings, vectors, keys, configuration, operations, jobs, stalls, spend, optimisations."""

import sqlalchemy as sa
from alembic import op

from reflexio.storage.fulltext.index import FulltextIndex
from reflexio.storage.schema import Json

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "clusters",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("agent_version", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("playbook_id", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("written", sa.Text(), server_default="", nullable=False),
        sa.Column("failed", sa.Text(), server_default="", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.Column("size", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("centre", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("org_id", "agent_version", "name", "number"),
    )
    op.create_table(
        "pools",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("agent_version", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("fresh", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("fresh_since", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("signalled_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("model", sa.Text(), server_default="", nullable=False),
        sa.Column("similarity", sa.Float(), server_default="0", nullable=False),
        sa.Column("grouped", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("clusters", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("retry_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("org_id", "agent_version", "name"),
    )
    op.create_table(
        "configs",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("org_id"),
    )
    op.create_table(
        "interactions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("role", sa.Text(), server_default="", nullable=False),
        sa.Column("content", sa.Text(), server_default="", nullable=False),
        sa.Column("shadow_content", sa.Text(), server_default="", nullable=False),
        sa.Column("expert_content", sa.Text(), server_default="", nullable=False),
        sa.Column("user_action", sa.Text(), server_default="", nullable=False),
        sa.Column("user_action_description", sa.Text(), server_default="", nullable=False),
        sa.Column("interacted_image_url", sa.Text(), server_default="", nullable=False),
        sa.Column("tools_used", Json(), nullable=True),
        sa.Column("citations", Json(), nullable=True),
        sa.Column("retrieved_learnings", Json(), nullable=True),
        sa.Column("image_encoding", sa.Text(), server_default="", nullable=False),
        sa.Column("is_indexed", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.Column("is_learned", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("interactions_by_time", "interactions", ["org_id", "created_at", "id"], unique=False)
    op.create_index("interactions_of_request", "interactions", ["org_id", "request_id", "id"], unique=False)
    op.create_index("interactions_of_user", "interactions", ["org_id", "user_id", "created_at", "id"], unique=False)
    op.create_index(
        "interactions_unindexed",
        "interactions",
        ["id"],
        unique=False,
        sqlite_where=sa.text("is_indexed = 0"),
        postgresql_where=sa.text("NOT is_indexed"),
    )
    op.create_index(
        "interactions_unlearned",
        "interactions",
        ["org_id", "user_id", "id"],
        unique=False,
        sqlite_where=sa.text("is_learned = 0"),
        postgresql_where=sa.text("NOT is_learned"),
    )
    op.create_table(
        "keys",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), server_default="", nullable=False),
        sa.Column("prefix", sa.Text(), server_default="", nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest"),
    )
    op.create_table(
        "learnings",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=True),
        sa.Column("user_id", sa.Text(), server_default="", nullable=False),
        sa.Column("agent_version", sa.Text(), server_default="", nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("source", sa.Text(), server_default="", nullable=False),
        sa.Column("request_id", sa.Text(), server_default="", nullable=False),
        sa.Column("status", sa.Text(), server_default="", nullable=False),
        sa.Column("review", sa.Text(), server_default="", nullable=False),
        sa.Column("content", sa.Text(), server_default="", nullable=False),
        sa.Column("trigger", sa.Text(), server_default="", nullable=False),
        sa.Column("rationale", sa.Text(), server_default="", nullable=False),
        sa.Column("tags", sa.Text(), server_default="", nullable=False),
        sa.Column("cluster", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("details", Json(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("modified_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("expires_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("org_id", "kind", "key", name="learnings_once"),
        sqlite_autoincrement=True,
    )
    op.create_index("learnings_by_time", "learnings", ["org_id", "kind", "created_at", "id"], unique=False)
    op.create_index("learnings_of_cluster", "learnings", ["org_id", "agent_version", "name", "cluster"], unique=False)
    op.create_index("learnings_of_request", "learnings", ["org_id", "request_id"], unique=False)
    op.create_index(
        "learnings_of_user",
        "learnings",
        ["org_id", "kind", "user_id", "created_at", "id", "status", "expires_at"],
        unique=False,
    )
    op.create_index(
        "learnings_of_version", "learnings", ["org_id", "kind", "agent_version", "name", "id"], unique=False
    )
    op.create_table(
        "lineage",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("learning_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), server_default="", nullable=False),
        sa.Column("op", sa.Text(), server_default="", nullable=False),
        sa.Column("actor", sa.Text(), server_default="", nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("from_status", sa.Text(), server_default="", nullable=False),
        sa.Column("to_status", sa.Text(), server_default="", nullable=False),
        sa.Column("details", Json(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("lineage_of_learning", "lineage", ["org_id", "learning_id", "id"], unique=False)
    op.create_table(
        "operation_outcomes",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("operation_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("org_id", "operation_id", "user_id", name="outcomes_once"),
    )
    op.create_index("outcomes_in_order", "operation_outcomes", ["org_id", "operation_id", "seq"], unique=False)
    op.create_index("outcomes_of_user", "operation_outcomes", ["org_id", "user_id"], unique=False)
    op.create_table(
        "operations",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("service_name", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), server_default="", nullable=False),
        sa.Column("params", Json(), nullable=True),
        sa.Column("total_users", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("processed_users", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("failed_users", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("current_user_id", sa.Text(), server_default="", nullable=False),
        sa.Column("stats", Json(), nullable=True),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.Column("started_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("heartbeat_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("completed_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cancel_requested", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("org_id", "id", name="operations_once"),
        sqlite_autoincrement=True,
    )
    op.create_index("operations_of_service", "operations", ["org_id", "service_name", "seq"], unique=False)
    op.create_index(
        "operations_one_at_a_time",
        "operations",
        ["org_id", "service_name"],
        unique=True,
        sqlite_where=sa.text("status = 'in_progress'"),
        postgresql_where=sa.text("status = 'in_progress'"),
    )
    op.create_table(
        "receipts",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), server_default="", nullable=False),
        sa.Column("answer", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("org_id", "key"),
    )
    op.create_index("receipts_by_age", "receipts", ["created_at"], unique=False)
    op.create_table(
        "requests",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), server_default="", nullable=False),
        sa.Column("agent_version", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("evaluation_only", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.Column("session_finished", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.Column("skip_aggregation", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.Column("force_extraction", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.Column("retrieval_experiment_id", sa.Text(), nullable=True),
        sa.Column("retrieval_experiment_arm", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("org_id", "request_id", name="requests_once"),
    )
    op.create_index("requests_by_time", "requests", ["org_id", "created_at", "id"], unique=False)
    op.create_index("requests_of_session", "requests", ["org_id", "session_id", "created_at", "id"], unique=False)
    op.create_index("requests_of_user", "requests", ["org_id", "user_id", "created_at", "id"], unique=False)
    op.create_table(
        "spend",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("calls", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("org_id", "day", "operation", "model"),
    )
    op.create_table(
        "stalls",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("message", sa.Text(), server_default="", nullable=False),
        sa.Column("since", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("notified", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("org_id"),
    )
    op.create_table(
        "jobs",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("key", sa.Text(), server_default="", nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("lane", sa.Text(), server_default="", nullable=False),
        sa.Column("data", sa.Text(), server_default="", nullable=False),
        sa.Column("state", sa.Text(), server_default="", nullable=False),
        sa.Column("begun", sa.Integer(), server_default="0", nullable=False),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.Column("asked_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("ended_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("key", name="jobs_once"),
        sqlite_autoincrement=True,
    )
    op.create_index("jobs_by_end", "jobs", ["state", "ended_at"], unique=False)
    op.create_table(
        "job_answers",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", "step"),
    )
    op.create_table(
        "unembedded",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("row_id", sa.BigInteger(), nullable=False),
        sa.Column("lane", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sqlite_autoincrement=True,
    )
    op.create_index("unembedded_in_order", "unembedded", ["lane", "seq"], unique=False)
    op.create_index("unembedded_of_row", "unembedded", ["kind", "row_id"], unique=False)
    op.create_table(
        "users",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("unlearned_since", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("published_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("retry_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("last_error", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("org_id", "user_id"),
    )
    op.create_index("users_unlearned", "users", ["unlearned_since"], unique=False)
    op.create_table(
        "vectors",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("row_id", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.Text(), server_default="", nullable=False),
        sa.Column("model", sa.Text(), server_default="", nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("kind", "row_id", name="vectors_once"),
        sqlite_autoincrement=True,
    )
    op.create_index("vectors_of_shelf", "vectors", ["org_id", "kind", "seq"], unique=False)
    op.create_table(
        "windows",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), server_default="", nullable=False),
        sa.Column("state", sa.Text(), server_default="", nullable=False),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.Column("learner", sa.Text(), server_default="", nullable=False),
        sa.Column("fingerprint", sa.Text(), server_default="", nullable=False),
        sa.Column("turn_ids", Json(), nullable=True),
        sa.Column("counts", Json(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("org_id", "key"),
    )
    op.create_index("windows_of_user", "windows", ["org_id", "user_id", "created_at"], unique=False)
    _optimisations()
    if op.get_bind().dialect.name == "sqlite":
        for entity in ("learning", "interaction"):
            FulltextIndex(entity).create(op.get_bind())


def _optimisations() -> None:
    op.create_table(
        "optimisation_candidates",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("content", sa.Text(), server_default="", nullable=False),
        sa.Column("parents", Json(), nullable=True),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("is_winner", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.Column("created_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("org_id", "job_id", "place", name="optimisation_candidates_once"),
    )
    op.create_table(
        "optimisation_evaluations",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("scene", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), server_default="", nullable=False),
        sa.Column("document", Json(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("org_id", "job_id", "place", "scene", name="optimisation_evaluations_once"),
    )
    op.create_index("optimisation_evaluations_of_user", "optimisation_evaluations", ["org_id", "user_id"], unique=False)
    op.create_table(
        "optimisation_events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("type", sa.Text(), server_default="", nullable=False),
        sa.Column("payload", Json(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("org_id", "job_id", "number", name="optimisation_events_once"),
    )
    op.create_table(
        "optimisation_jobs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("target_kind", sa.Text(), nullable=False),
        sa.Column("target_id", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), server_default="", nullable=False),
        sa.Column("document", Json(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("optimisation_jobs_by_time", "optimisation_jobs", ["org_id", "created_at", "id"], unique=False)
    op.create_index(
        "optimisation_jobs_of_target", "optimisation_jobs", ["org_id", "target_kind", "target_id", "id"], unique=False
    )
    op.create_index(
        "optimisation_jobs_unfinished",
        "optimisation_jobs",
        ["org_id", "id"],
        unique=False,
        sqlite_where=sa.text("status IN ('pending', 'running')"),
        postgresql_where=sa.text("status IN ('pending', 'running')"),
    )
