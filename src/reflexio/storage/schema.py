"""The tables. Every row belongs to an organisation; times are seconds since 1970.

A change here needs a migration: a test compares the two. What only PostgreSQL must know is in the migrations that
create its tables: named here, it would load that dialect at every start.
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
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

metadata = MetaData()
FULLTEXT_ENTITIES = ("learning", "interaction")
"""What is found by words. `fulltext/` creates the tables of each."""


class Json(TypeDecorator[Any]):
    """JSON as text, the same bytes on every database."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> str | None:
        return None if value is None else orjson.dumps(value).decode()

    def process_result_value(self, value: Any, dialect: Any) -> Any:
        return None if value is None else orjson.loads(value)


class HalfVector(TypeDecorator[bytes]):
    """A vector in half precision, as its bytes; on PostgreSQL a halfvec, so that the database can search it."""

    impl = LargeBinary
    cache_ok = True

    def load_dialect_impl(self, dialect: Any) -> Any:
        return dialect.type_descriptor(Text() if dialect.name == "postgresql" else LargeBinary())

    def bind_expression(self, bindvalue: Any) -> Any:
        return _Stored(bindvalue)

    def column_expression(self, column: Any) -> Any:
        return _Bytes(column)

    def process_bind_param(self, value: Any, dialect: Any) -> Any:
        if value is None or dialect.name != "postgresql":
            return value
        import numpy as np

        return f"[{','.join(map(repr, np.frombuffer(value, np.float16).astype(float).tolist()))}]"

    def process_result_value(self, value: Any, dialect: Any) -> Any:
        if value is None or dialect.name != "postgresql":
            return value
        import numpy as np

        return np.frombuffer(value[HALFVEC_HEADER:], ">f2").astype(np.float16).tobytes()


HALFVEC_HEADER = 4
"""Bytes before the numbers when pgvector sends a vector."""


class _Stored(FunctionElement[Any]):
    """A value on its way into a column of vectors."""

    inherit_cache = True


class _Bytes(FunctionElement[Any]):
    """A column of vectors on its way out."""

    inherit_cache = True
    type = HalfVector()


@compiles(_Stored)
@compiles(_Bytes)
def _as_it_is(element: FunctionElement[Any], compiler: Any, **options: Any) -> str:
    return str(compiler.process(element.clauses, **options))


@compiles(_Stored, "postgresql")
def _as_halfvec(element: FunctionElement[Any], compiler: Any, **options: Any) -> str:
    return f"CAST({compiler.process(element.clauses, **options)} AS halfvec)"


@compiles(_Bytes, "postgresql")
def _as_sent(element: FunctionElement[Any], compiler: Any, **options: Any) -> str:
    return f"halfvec_send({compiler.process(element.clauses, **options)})"


def serial(name: str = "id") -> Column[int]:
    # SQLite counts up automatically only in an INTEGER PRIMARY KEY.
    return Column(name, BigInteger().with_variant(Integer(), "sqlite"), primary_key=True, autoincrement=True)


def key(*names: str) -> list[Column[str]]:
    return [Column(name, Text, primary_key=True) for name in names]


def required(*names: str) -> list[Column[str]]:
    return [Column(name, Text, nullable=False) for name in names]


def texts(*names: str) -> list[Column[str]]:
    return [Column(name, Text, nullable=False, server_default="") for name in names]


def numbers(*names: str) -> list[Column[int]]:
    return [Column(name, BigInteger, nullable=False, server_default="0") for name in names]


def small_number(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default="0")


def flags(*names: str) -> list[Column[bool]]:
    return [Column(name, Boolean, nullable=False, server_default=false()) for name in names]


keys = Table(
    "keys",
    metadata,
    serial(),
    *required("org_id"),
    *texts("label", "prefix"),
    Column("digest", Text, nullable=False, unique=True),
    *numbers("created_at", "revoked_at"),
    *texts("scopes", "owner"),
)

configs = Table("configs", metadata, *key("org_id"), *required("document"), *numbers("updated_at"))

receipts = Table(
    "receipts",
    metadata,
    *key("org_id", "key"),
    *texts("fingerprint", "answer"),
    *numbers("created_at"),
    *texts("user_id"),
    Index("receipts_by_age", "created_at"),
    Index("receipts_of_user", "org_id", "user_id"),
)

# The digests of the receipts of erasures. They name nobody: each is made with a nonce that only the receipt has.
erasures = Table("erasures", metadata, *key("org_id", "digest"), *numbers("created_at"))

# Erasures of users that are under way: they go on after a crash. `progress` counts what was removed so far.
unfinished_erasures = Table(
    "unfinished_erasures",
    metadata,
    *key("org_id", "user_id"),
    *flags("withdraw_unsupported"),
    Column("progress", Json),
    *numbers("started_at"),
)

users = Table(
    "users",
    metadata,
    *key("org_id", "user_id"),
    *numbers("unlearned_since", "published_at"),
    small_number("attempts"),
    *numbers("retry_at"),
    *texts("last_error"),
    *numbers("reserved_until"),
    # By organisation, here and where else something waits: each gets its share, however much others have waiting.
    Index("users_waiting", "org_id", "unlearned_since", "user_id", sqlite_where=sql("unlearned_since > 0")),
)

requests = Table(
    "requests",
    metadata,
    serial(),
    *required("org_id", "request_id", "user_id", "session_id"),
    *texts("source", "agent_version"),
    *numbers("created_at"),
    *flags("evaluation_only", "session_finished", "skip_aggregation", "force_extraction"),
    Column("retrieval_experiment_id", Text),
    Column("retrieval_experiment_arm", Text),
    *numbers("redacted_count"),
    UniqueConstraint("org_id", "request_id", name="requests_once"),
    Index("requests_by_time", "org_id", "created_at", "id"),
    Index("requests_of_user", "org_id", "user_id", "created_at", "id"),
    Index("requests_of_session", "org_id", "session_id", "created_at", "id"),
    Index("requests_of_user_session", "org_id", "user_id", "session_id", "created_at", "id"),
    Index("requests_of_version", "org_id", "agent_version", "created_at", "id"),
)

interactions = Table(
    "interactions",
    metadata,
    serial(),
    *required("org_id", "user_id", "request_id"),
    *numbers("created_at"),
    *texts("role", "content", "shadow_content", "expert_content"),
    *texts("user_action", "user_action_description", "interacted_image_url"),
    Column("tools_used", Json),
    Column("citations", Json),
    Column("retrieved_learnings", Json),
    *texts("image_encoding"),
    *flags("is_indexed", "is_learned", "profiles_unread", "playbooks_unread"),
    # In the words of the query: SQLite uses such an index only where a query has the same condition.
    Index("interactions_unindexed", "org_id", "id", sqlite_where=sql("is_indexed = 0")),
    Index("interactions_unlearned", "org_id", "user_id", "id", sqlite_where=sql("is_learned = 0")),
    Index(
        "interactions_unread",
        *("org_id", "user_id", "id", "profiles_unread", "playbooks_unread"),
        sqlite_where=sql("profiles_unread = 1 OR playbooks_unread = 1"),
    ),
    Index("interactions_by_time", "org_id", "created_at", "id"),
    Index("interactions_of_user", "org_id", "user_id", "created_at", "id"),
    Index("interactions_of_request", "org_id", "request_id", "id"),
    sqlite_autoincrement=True,
)

# A learning is a profile, a user playbook or an agent playbook (`kind`). `key` is its public id when that is not
# the row's own number; `review` is a person's decision about an agent playbook. `cluster` is the number of the cluster
# that a user playbook belongs to, or that an agent playbook summarises.
learnings = Table(
    "learnings",
    metadata,
    serial(),
    *required("org_id", "kind"),
    Column("key", Text),
    *texts("user_id", "agent_version", "name", "source", "request_id", "status", "review"),
    *texts("content", "trigger", "rationale", "tags"),
    *numbers("cluster"),
    Column("details", Json),
    *numbers("created_at", "modified_at", "expires_at"),
    *texts("scope"),
    UniqueConstraint("org_id", "kind", "key", name="learnings_once"),
    Index("learnings_by_time", "org_id", "kind", "created_at", "id"),
    # With status and expiry, so that a search need not read the rows that it leaves out.
    Index("learnings_of_user", "org_id", "kind", "user_id", "created_at", "id", "status", "expires_at"),
    Index("learnings_of_version", "org_id", "kind", "agent_version", "name", "id"),
    Index("learnings_of_request", "org_id", "request_id"),
    # With the user before the time, so that the rows of one user are found without those of the others.
    Index("learnings_of_scope", "org_id", "kind", "scope", "user_id", "created_at", "id"),
    Index("learnings_of_cluster", "org_id", "agent_version", "name", "cluster"),
    sqlite_autoincrement=True,
)

# What happened to a learning, by whom and why.
lineage = Table(
    "lineage",
    metadata,
    serial(),
    *required("org_id"),
    Column("learning_id", BigInteger, nullable=False),
    *texts("kind", "op", "actor", "reason", "from_status", "to_status"),
    Column("details", Json),
    *numbers("created_at"),
    Index("lineage_of_learning", "org_id", "learning_id", "id"),
)

# Which learnings were in the prompt of a turn, read from the turn when it is indexed.
exposures = Table(
    "exposures",
    metadata,
    *key("org_id", "kind", "public_id"),
    Column("interaction_id", BigInteger, primary_key=True),
    *texts("user_id"),
    Index("exposures_of_turn", "interaction_id"),
    Index("exposures_of_user", "org_id", "user_id"),
)

# One vector for each row, in half precision. A new or changed vector takes a new number, so that a copy reads on from
# the last number that it has seen; a removed row leaves a number with no vector.
vectors = Table(
    "vectors",
    metadata,
    serial("seq"),
    *required("org_id", "kind"),
    Column("row_id", BigInteger, nullable=False),
    *texts("user_id", "model"),
    Column("vector", HalfVector),
    UniqueConstraint("kind", "row_id", name="vectors_once"),
    Index("vectors_of_shelf", "org_id", "kind", "seq"),
    sqlite_autoincrement=True,
)

# Rows that wait for their vector. Learnings go before turns.
unembedded = Table(
    "unembedded",
    metadata,
    serial("seq"),
    *required("org_id", "kind"),
    Column("row_id", BigInteger, nullable=False),
    small_number("lane"),
    Index("unembedded_in_order", "lane", "org_id", "seq"),
    Index("unembedded_of_row", "kind", "row_id"),
    sqlite_autoincrement=True,
)

# What was indexed and embedded, of all organisations together: servers show what workers count.
index_counts = Table("index_counts", metadata, *key("name"), *numbers("count"))

# One window that was learned from, or set aside because it never can be. The key makes learning it twice impossible.
windows = Table(
    "windows",
    metadata,
    *key("org_id", "key"),
    *texts("user_id", "state", "error", "learner", "fingerprint"),
    Column("turn_ids", Json),
    Column("counts", Json),
    *numbers("created_at"),
    Index("windows_of_user", "org_id", "user_id", "created_at"),
    Index("windows_set_aside", "org_id", "created_at", sqlite_where=sql("state = 'set_aside'")),
)

# Steps of a window that is not learned yet which a model was paid for: a failed attempt does not pay again.
finished_steps = Table(
    "finished_steps",
    metadata,
    *key("org_id", "user_id", "window_key", "step"),
    *texts("setup"),
    Column("turn_ids", Json),
    Column("result", Json),
    *numbers("created_at"),
)

# The one stall of an organisation: learning waits until the provider accepts its key or bill again.
stalls = Table("stalls", metadata, *key("org_id"), *texts("reason", "message"), *numbers("since"), *flags("notified"))

# Durable work of all organisations: jobs in the order they were enqueued, and the answers of finished steps. `begun`
# counts claims; the lease of `worker` ends at `lease_until`, in milliseconds of the database's clock. `organisation` is
# whose work it is; not `org_id`, which would put these rows behind the row security of callers.
jobs = Table(
    "jobs",
    metadata,
    serial("seq"),
    *texts("key", "name", "lane", "data", "state"),
    small_number("begun"),
    Column("result", Text),
    *texts("error"),
    *numbers("asked_at", "ended_at"),
    *texts("worker"),
    *numbers("lease_until"),
    *texts("organisation"),
    UniqueConstraint("key", name="jobs_once"),
    Index("jobs_by_end", "state", "ended_at"),
    Index("jobs_of_lane", "lane", "seq"),
    Index("jobs_of_worker", "worker"),
    sqlite_autoincrement=True,
)

# Which worker runs the schedules, and until when, in milliseconds of the database's clock.
leases = Table("leases", metadata, *key("name"), *required("holder"), *numbers("lease_until"))

job_answers = Table(
    "job_answers",
    metadata,
    *key("key", "step"),
    Column("version", Integer, nullable=False),
    *required("answer"),
)

# Long work that a caller asked for and follows. One operation of a service is in progress at a time.
operations = Table(
    "operations",
    metadata,
    serial("seq"),
    *required("org_id", "id", "service_name"),
    *texts("status"),
    Column("params", Json),
    *numbers("total_users", "processed_users", "failed_users"),
    *texts("current_user_id"),
    Column("stats", Json),
    *texts("error"),
    *numbers("started_at", "heartbeat_at", "completed_at"),
    *flags("cancel_requested"),
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

# The users that an operation has processed: one row each, so that noting one costs the same however many there are.
outcomes = Table(
    "operation_outcomes",
    metadata,
    serial("seq"),
    *required("org_id", "operation_id", "user_id"),
    *texts("error"),
    UniqueConstraint("org_id", "operation_id", "user_id", name="outcomes_once"),
    Index("outcomes_in_order", "org_id", "operation_id", "seq"),
    Index("outcomes_of_user", "org_id", "user_id"),
)

# The user playbooks of one agent version and type: how many were learned since they were last clustered, and how
# similar members of a cluster are. `clusters` is the last number that was given to a cluster.
pools = Table(
    "pools",
    metadata,
    *key("org_id", "agent_version", "name"),
    *numbers("fresh", "fresh_since", "signalled_at"),
    *texts("model"),
    Column("similarity", Float, nullable=False, server_default="0"),
    *numbers("grouped", "clusters"),
    small_number("attempts"),
    *numbers("retry_at"),
)

# A cluster: the mean of its members, and what it was when the learner last summarised it.
clusters = Table(
    "clusters",
    metadata,
    *key("org_id", "agent_version", "name"),
    Column("number", BigInteger, primary_key=True),
    *numbers("playbook_id"),
    *texts("written", "failed"),
    small_number("attempts"),
    *texts("error"),
    *numbers("size"),
    Column("centre", LargeBinary),
    *numbers("statements", "users"),
)

# What learning costs. `day` is a date in UTC, ISO 8601.
spend = Table(
    "spend",
    metadata,
    *key("org_id", "day", "operation", "model"),
    *numbers("calls", "input_tokens", "output_tokens"),
    small_number("estimated_calls"),
)

# Optimisation jobs. `document` holds all fields that are only shown.
optimisation_jobs = Table(
    "optimisation_jobs",
    metadata,
    serial(),
    *required("org_id", "target_kind"),
    Column("target_id", BigInteger, nullable=False),
    *texts("status"),
    Column("document", Json),
    *numbers("created_at"),
    Index("optimisation_jobs_by_time", "org_id", "created_at", "id"),
    Index("optimisation_jobs_of_target", "org_id", "target_kind", "target_id", "id"),
    Index("optimisation_jobs_unfinished", "org_id", "id", sqlite_where=sql("status IN ('pending', 'running')")),
    sqlite_autoincrement=True,
)

optimisation_candidates = Table(
    "optimisation_candidates",
    metadata,
    serial(),
    *required("org_id"),
    Column("job_id", BigInteger, nullable=False),
    Column("place", Integer, nullable=False),
    *texts("content"),
    Column("parents", Json),
    Column("score", Float),
    *flags("is_winner"),
    *numbers("created_at"),
    UniqueConstraint("org_id", "job_id", "place", name="optimisation_candidates_once"),
)

# A candidate in one scenario, tried once. What users said is not copied: it is read from the turns while they exist.
optimisation_evaluations = Table(
    "optimisation_evaluations",
    metadata,
    serial(),
    *required("org_id"),
    Column("job_id", BigInteger, nullable=False),
    Column("place", Integer, nullable=False),
    *required("scene"),
    *texts("user_id"),
    Column("document", Json),
    *numbers("created_at"),
    UniqueConstraint("org_id", "job_id", "place", "scene", name="optimisation_evaluations_once"),
    Index("optimisation_evaluations_of_user", "org_id", "user_id"),
)

optimisation_events = Table(
    "optimisation_events",
    metadata,
    serial(),
    *required("org_id"),
    Column("job_id", BigInteger, nullable=False),
    Column("number", Integer, nullable=False),
    *texts("type"),
    Column("payload", Json),
    *numbers("created_at"),
    UniqueConstraint("org_id", "job_id", "number", name="optimisation_events_once"),
)
