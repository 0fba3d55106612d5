"""The tables. Every row belongs to an organisation; times are seconds since 1970.

A change here comes with a migration: a test compares the two. What PostgreSQL alone must know stands in the migrations,
which make its tables: named here, it would load that dialect at every start.
"""

from typing import Any

import orjson
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    false,
)
from sqlalchemy import text as sql

metadata = MetaData()
WITH_WORDS = ("learning", "interaction")
"""What is found by words: beside each, tables that their search makes itself."""

# SQLite counts up by itself only in an INTEGER PRIMARY KEY.
Id = BigInteger().with_variant(Integer(), "sqlite")


class Json(TypeDecorator[Any]):
    """JSON as text, the same bytes on every database."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> str | None:
        return None if value is None else orjson.dumps(value).decode()

    def process_result_value(self, value: Any, dialect: Any) -> Any:
        return None if value is None else orjson.loads(value)


def text(name: str, **more: Any) -> Column[str]:
    return Column(name, Text, nullable=False, server_default="", **more)


def seconds(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default="0")


def flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False, server_default=false())


def org() -> Column[str]:
    return Column("org_id", Text, nullable=False)


keys = Table(
    "keys",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    org(),
    text("label"),
    text("prefix"),
    Column("digest", Text, nullable=False, unique=True),
    seconds("created_at"),
    seconds("revoked_at"),
)

configs = Table(
    "configs",
    metadata,
    Column("org_id", Text, primary_key=True),
    Column("document", Text, nullable=False),
    seconds("updated_at"),
)

receipts = Table(
    "receipts",
    metadata,
    Column("org_id", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    text("fingerprint"),
    text("answer"),
    seconds("created_at"),
    Index("receipts_by_age", "created_at"),
)

users = Table(
    "users",
    metadata,
    Column("org_id", Text, primary_key=True),
    Column("user_id", Text, primary_key=True),
    seconds("unlearned_since"),
    seconds("published_at"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    seconds("retry_at"),
    text("last_error"),
    Index("users_unlearned", "unlearned_since"),
)

requests = Table(
    "requests",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    org(),
    Column("request_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    text("source"),
    text("agent_version"),
    seconds("created_at"),
    flag("evaluation_only"),
    flag("session_finished"),
    flag("skip_aggregation"),
    flag("force_extraction"),
    Column("retrieval_experiment_id", Text),
    Column("retrieval_experiment_arm", Text),
    UniqueConstraint("org_id", "request_id", name="requests_once"),
    Index("requests_by_time", "org_id", "created_at", "id"),
    Index("requests_of_user", "org_id", "user_id", "created_at", "id"),
    Index("requests_of_session", "org_id", "session_id", "created_at", "id"),
)

interactions = Table(
    "interactions",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    org(),
    Column("user_id", Text, nullable=False),
    Column("request_id", Text, nullable=False),
    seconds("created_at"),
    text("role"),
    text("content"),
    text("shadow_content"),
    text("expert_content"),
    text("user_action"),
    text("user_action_description"),
    text("interacted_image_url"),
    Column("tools_used", Json),
    Column("citations", Json),
    Column("retrieved_learnings", Json),
    text("image_encoding"),
    flag("is_indexed"),
    flag("is_learned"),
    # In the words of the question: SQLite uses such an index only where the same condition is asked for.
    Index("interactions_unindexed", "id", sqlite_where=sql("is_indexed = 0")),
    Index("interactions_unlearned", "org_id", "user_id", "id", sqlite_where=sql("is_learned = 0")),
    Index("interactions_by_time", "org_id", "created_at", "id"),
    Index("interactions_of_user", "org_id", "user_id", "created_at", "id"),
    Index("interactions_of_request", "org_id", "request_id", "id"),
    sqlite_autoincrement=True,
)

# A learning is a profile, a user playbook or an agent playbook (`kind`). `key` is its public id when that is not
# the row's own number; `review` is a person's decision about an agent playbook. `cluster` is the number of the cluster
# that a user playbook belongs to, or that an agent playbook was made of.
learnings = Table(
    "learnings",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    org(),
    Column("kind", Text, nullable=False),
    Column("key", Text),
    text("user_id"),
    text("agent_version"),
    text("name"),
    text("source"),
    text("request_id"),
    text("status"),
    text("review"),
    text("content"),
    text("trigger"),
    text("rationale"),
    text("tags"),
    Column("cluster", BigInteger, nullable=False, server_default="0"),
    Column("details", Json),
    seconds("created_at"),
    seconds("modified_at"),
    seconds("expires_at"),
    UniqueConstraint("org_id", "kind", "key", name="learnings_once"),
    Index("learnings_by_time", "org_id", "kind", "created_at", "id"),
    # Status and expiry stand in it so that a search need not read the rows that it leaves out.
    Index("learnings_of_user", "org_id", "kind", "user_id", "created_at", "id", "status", "expires_at"),
    Index("learnings_of_version", "org_id", "kind", "agent_version", "name", "id"),
    Index("learnings_of_request", "org_id", "request_id"),
    Index("learnings_of_cluster", "org_id", "agent_version", "name", "cluster"),
    sqlite_autoincrement=True,
)

# What happened to a learning, by whom and why.
lineage = Table(
    "lineage",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    org(),
    Column("learning_id", BigInteger, nullable=False),
    text("kind"),
    text("op"),
    text("actor"),
    text("reason"),
    text("from_status"),
    text("to_status"),
    Column("details", Json),
    seconds("created_at"),
    Index("lineage_of_learning", "org_id", "learning_id", "id"),
)

# One vector a row, in half precision. A new or changed vector takes a new number, so that whoever keeps a copy
# reads on from the last number it has seen; a removed row leaves its number with no vector.
vectors = Table(
    "vectors",
    metadata,
    Column("seq", Id, primary_key=True, autoincrement=True),
    org(),
    Column("kind", Text, nullable=False),
    Column("row_id", BigInteger, nullable=False),
    text("user_id"),
    text("model"),
    Column("vector", LargeBinary),
    UniqueConstraint("kind", "row_id", name="vectors_once"),
    Index("vectors_of_shelf", "org_id", "kind", "seq"),
    sqlite_autoincrement=True,
)

# Rows whose vector is still to be made. Learnings go before turns.
unembedded = Table(
    "unembedded",
    metadata,
    Column("seq", Id, primary_key=True, autoincrement=True),
    org(),
    Column("kind", Text, nullable=False),
    Column("row_id", BigInteger, nullable=False),
    Column("lane", Integer, nullable=False, server_default="0"),
    Index("unembedded_in_order", "lane", "seq"),
    Index("unembedded_of_row", "kind", "row_id"),
    sqlite_autoincrement=True,
)

# One window that was learned from, or set aside because it never can be. The key makes learning it twice impossible.
windows = Table(
    "windows",
    metadata,
    Column("org_id", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    text("user_id"),
    text("state"),
    text("error"),
    text("learner"),
    text("fingerprint"),
    Column("turn_ids", Json),
    Column("counts", Json),
    seconds("created_at"),
    Index("windows_of_user", "org_id", "user_id", "created_at"),
)

# The one stall of an organisation: learning waits until the provider takes its key or bill again.
stalls = Table(
    "stalls",
    metadata,
    Column("org_id", Text, primary_key=True),
    text("reason"),
    text("message"),
    seconds("since"),
    flag("notified"),
)

# Durable work of all organisations: what was asked for, in that order, and the answers of finished steps.
jobs = Table(
    "jobs",
    metadata,
    Column("seq", Id, primary_key=True, autoincrement=True),
    text("key"),
    text("name"),
    text("lane"),
    text("data"),
    text("state"),
    Column("begun", Integer, nullable=False, server_default="0"),
    Column("result", Text),
    text("error"),
    seconds("asked_at"),
    seconds("ended_at"),
    UniqueConstraint("key", name="jobs_once"),
    Index("jobs_by_end", "state", "ended_at"),
    sqlite_autoincrement=True,
)

job_answers = Table(
    "job_answers",
    metadata,
    Column("key", Text, primary_key=True),
    Column("step", Text, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("answer", Text, nullable=False),
)

# Long work that somebody asked for. One of a service is in progress at a time, whoever asks.
operations = Table(
    "operations",
    metadata,
    Column("seq", Id, primary_key=True, autoincrement=True),
    org(),
    Column("id", Text, nullable=False),
    Column("service_name", Text, nullable=False),
    text("status"),
    Column("params", Json),
    Column("total_users", BigInteger, nullable=False, server_default="0"),
    Column("processed_users", BigInteger, nullable=False, server_default="0"),
    Column("failed_users", BigInteger, nullable=False, server_default="0"),
    text("current_user_id"),
    Column("stats", Json),
    text("error"),
    seconds("started_at"),
    seconds("heartbeat_at"),
    seconds("completed_at"),
    flag("cancel_requested"),
    UniqueConstraint("org_id", "id", name="operations_once"),
    Index("operations_of_service", "org_id", "service_name", "seq"),
    Index(
        "operations_one_at_a_time",
        "org_id",
        "service_name",
        unique=True,
        sqlite_where=sql("status = 'in_progress'"),
    ),
    sqlite_autoincrement=True,
)

# The users that an operation is through with: a row each, so that noting one costs the same however many there are.
outcomes = Table(
    "operation_outcomes",
    metadata,
    Column("seq", Id, primary_key=True, autoincrement=True),
    org(),
    Column("operation_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    text("error"),
    UniqueConstraint("org_id", "operation_id", "user_id", name="outcomes_once"),
    Index("outcomes_in_order", "org_id", "operation_id", "seq"),
    Index("outcomes_of_user", "org_id", "user_id"),
)

# The user playbooks of one agent version and type: how many were learned since they were last gathered, and how alike
# members of a cluster are. `clusters` is the last number that a cluster was given.
pools = Table(
    "pools",
    metadata,
    Column("org_id", Text, primary_key=True),
    Column("agent_version", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("fresh", BigInteger, nullable=False, server_default="0"),
    seconds("fresh_since"),
    seconds("signalled_at"),
    text("model"),
    Column("similarity", Float, nullable=False, server_default="0"),
    Column("grouped", BigInteger, nullable=False, server_default="0"),
    Column("clusters", BigInteger, nullable=False, server_default="0"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    seconds("retry_at"),
)

# A cluster: the middle of its members, and what it was when the learner last dealt with it.
clusters = Table(
    "clusters",
    metadata,
    Column("org_id", Text, primary_key=True),
    Column("agent_version", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("playbook_id", BigInteger, nullable=False, server_default="0"),
    text("written"),
    text("failed"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    text("error"),
    Column("size", BigInteger, nullable=False, server_default="0"),
    Column("centre", LargeBinary),
)

# What learning costs. `day` is a date in UTC, ISO 8601.
spend = Table(
    "spend",
    metadata,
    Column("org_id", Text, primary_key=True),
    Column("day", Text, primary_key=True),
    Column("operation", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("calls", BigInteger, nullable=False, server_default="0"),
    Column("input_tokens", BigInteger, nullable=False, server_default="0"),
    Column("output_tokens", BigInteger, nullable=False, server_default="0"),
)

# Searches for better wording. `document` holds all that is only shown.
optimisation_jobs = Table(
    "optimisation_jobs",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    org(),
    Column("target_kind", Text, nullable=False),
    Column("target_id", BigInteger, nullable=False),
    text("status"),
    Column("document", Json),
    seconds("created_at"),
    Index("optimisation_jobs_by_time", "org_id", "created_at", "id"),
    Index("optimisation_jobs_of_target", "org_id", "target_kind", "target_id", "id"),
    Index(
        "optimisation_jobs_unfinished",
        "org_id",
        "id",
        sqlite_where=sql("status IN ('pending', 'running')"),
    ),
    sqlite_autoincrement=True,
)

optimisation_candidates = Table(
    "optimisation_candidates",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    org(),
    Column("job_id", BigInteger, nullable=False),
    Column("place", Integer, nullable=False),
    text("content"),
    Column("parents", Json),
    Column("score", Float),
    flag("is_winner"),
    seconds("created_at"),
    UniqueConstraint("org_id", "job_id", "place", name="optimisation_candidates_once"),
)

# A wording in a source window, tried once. What users said is not copied: it is read from the turns, while they are.
optimisation_evaluations = Table(
    "optimisation_evaluations",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    org(),
    Column("job_id", BigInteger, nullable=False),
    Column("place", Integer, nullable=False),
    Column("scene", Text, nullable=False),
    text("user_id"),
    Column("document", Json),
    seconds("created_at"),
    UniqueConstraint("org_id", "job_id", "place", "scene", name="optimisation_evaluations_once"),
    Index("optimisation_evaluations_of_user", "org_id", "user_id"),
)

optimisation_events = Table(
    "optimisation_events",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    org(),
    Column("job_id", BigInteger, nullable=False),
    Column("number", Integer, nullable=False),
    text("type"),
    Column("payload", Json),
    seconds("created_at"),
    UniqueConstraint("org_id", "job_id", "number", name="optimisation_events_once"),
)
