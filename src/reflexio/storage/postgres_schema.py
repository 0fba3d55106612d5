"""What tables have on PostgreSQL only: keys that begin with the organisation, partial indexes, row security, vectors.

Made from the one schema, so that a new table or column is there on both databases.
"""

from typing import Any

from sqlalchemy import Connection, Index, MetaData, PrimaryKeyConstraint, Table, UniqueConstraint, text
from sqlalchemy.types import UserDefinedType

from reflexio.storage.fulltext.index import FulltextIndex
from reflexio.storage.schema import FULLTEXT_ENTITIES, metadata

EVERY_ORGANISATION = "*"
"""The setting of a transaction that may see all rows, as the background's do."""
PARTIAL = {
    "users_waiting": "unlearned_since > 0",
    "interactions_unindexed": "NOT is_indexed",
    "interactions_unlearned": "NOT is_learned",
    "interactions_unread": "profiles_unread OR playbooks_unread",
    "windows_set_aside": "state = 'set_aside'",
    "operations_one_at_a_time": "status = 'in_progress'",
    "optimisation_jobs_unfinished": "status IN ('pending', 'running')",
}
"""The conditions of partial indexes, which SQLite has in its own words. A test compares the two lists."""
BY_ID = ("interactions", "learnings")
"""Tables whose rows the background looks up by their ids, whatever their organisation."""
VECTORS = (
    "ALTER TABLE vectors ADD COLUMN bits bit varying GENERATED ALWAYS AS (binary_quantize(vector)) STORED",
    "ALTER TABLE vectors ALTER COLUMN vector SET STORAGE PLAIN",
    "CREATE INDEX vectors_bits ON vectors (org_id, kind, model) INCLUDE (bits, row_id)",
    "CREATE INDEX vectors_of_user ON vectors (org_id, kind, user_id)",
    "CREATE INDEX unembedded_of_organisation ON unembedded (org_id, kind)",
)
POLICY = (
    "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
    # The settings are read once for a statement, not once for each row.
    "CREATE POLICY of_organisation ON {table} USING (org_id = (SELECT current_setting('reflexio.org', true))"
    f" OR (SELECT current_setting('reflexio.org', true)) = '{EVERY_ORGANISATION}')",
)
WITH_ORGANISATION = (
    "SELECT table_name FROM information_schema.columns WHERE column_name = 'org_id' AND table_schema = current_schema()"
    " ORDER BY table_name"
)


class HalfVec(UserDefinedType[bytes]):
    """pgvector's vector in half precision, of any length."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "halfvec"


def create(connection: Connection) -> None:
    """Creates all tables in an empty database."""
    postgres_metadata().create_all(connection)
    for entity in FULLTEXT_ENTITIES:
        FulltextIndex(entity).create(connection)
    for statement in VECTORS:
        connection.execute(text(statement))
    protect(connection)


def protect(connection: Connection) -> None:
    """Puts row security on every table of organisations that has none yet."""
    protected = set(connection.execute(text("SELECT tablename FROM pg_policies")).scalars())
    for table in connection.execute(text(WITH_ORGANISATION)).scalars().all():
        if table not in protected:
            for statement in POLICY:
                connection.execute(text(statement.format(table=table)))


def postgres_metadata() -> MetaData:
    """The schema as PostgreSQL has it."""
    copy = MetaData()
    for table in metadata.sorted_tables:
        _adapt(table.to_metadata(copy))
    return copy


def _adapt(table: Table) -> None:
    if "org_id" in table.columns:
        _begin_with_organisation(table)
    for index in list(table.indexes):
        if index.name in PARTIAL:
            table.indexes.discard(index)
            columns = [table.c[column.name] for column in index.columns]
            Index(index.name, *columns, unique=index.unique, postgresql_where=text(PARTIAL[str(index.name)]))
    if table.name in BY_ID:
        Index(f"{table.name}_by_id", table.c.id)
    if table.name == "vectors":
        table.c.vector.type = HalfVec()


def _begin_with_organisation(table: Table) -> None:
    primary = [column.name for column in table.primary_key]
    if primary[0] != "org_id":
        table.c.org_id.primary_key = True
        table.constraints.discard(table.primary_key)
        table.append_constraint(PrimaryKeyConstraint(table.c.org_id, *(table.c[name] for name in primary)))
    if table.name == "vectors":
        for constraint in [each for each in table.constraints if isinstance(each, UniqueConstraint)]:
            table.constraints.discard(constraint)
            columns = [table.c.org_id, *constraint.columns]
            table.append_constraint(UniqueConstraint(*columns, name=constraint.name))
