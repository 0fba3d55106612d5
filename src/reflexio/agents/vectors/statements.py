# ruff: noqa: S608  # the table's name is checked before it is written in, all else is a parameter
"""The SQL of the store in PostgreSQL. Names are checked and written in; everything else is a parameter."""

import re

from reflexio.errors import InvalidRequest

MOST_INDEXED = 2_000
"""Numbers of a vector up to which pgvector makes an HNSW index."""
LOCK = 7_365_251_033
"""Whoever makes the schema holds this: CREATE IF NOT EXISTS of two at once fails for one of them."""
NOTE = "Vectors by {}"
# The estimates of a plan made for any parameters are wrong for most users.
SESSION = (
    "SET hnsw.iterative_scan = strict_order",
    "SET hnsw.max_scan_tuples = 100000",
    "SET plan_cache_mode = force_custom_plan",
)
_NAME = re.compile(r"(?:[a-z_][a-z0-9_]{0,40}\.)?[a-z_][a-z0-9_]{0,40}", re.IGNORECASE)


class Statements:
    """What is said about one table."""

    def __init__(self, table: str, dimension: int) -> None:
        if not _NAME.fullmatch(table):
            raise InvalidRequest(
                f"{table!r} is no name for a table: letters, digits and _, at most 41, after a schema if need be."
            )
        self.table = table = ".".join(f'"{part}"' for part in table.split("."))
        self._plain = table.split(".")[-1].strip('"')
        self._dimension = dimension
        self.add = (
            f"INSERT INTO {table} (id, content, metadata, embedding) "
            "SELECT * FROM unnest(%s::text[], %s::text[], %s::jsonb[], %s::vector[]) "
            "ON CONFLICT (id) DO UPDATE SET content = excluded.content, metadata = excluded.metadata, "
            "embedding = excluded.embedding"
        )
        self.delete = f"DELETE FROM {table} WHERE id = ANY(%s::text[])"
        self.count = f"SELECT count(*) FROM {table}"
        self.get = f"SELECT id, content, metadata FROM {table} WHERE id = ANY(%s::text[])"
        self.vectors = f"SELECT id, embedding::real[] FROM {table} WHERE id = ANY(%s::text[])"
        self.bump = (
            f"UPDATE {table} AS kept SET metadata = metadata || (SELECT jsonb_object_agg(more.key, "
            "coalesce((kept.metadata -> more.key)::numeric, 0) + more.value::numeric) "
            "FROM jsonb_each(%s::jsonb) AS more) WHERE id = %s"
        )

    def schema(self, embedder: str) -> list[str]:
        """What makes the table. It is told who fills it, since vectors of two embedders cannot be compared."""
        note = NOTE.format(embedder).replace("'", "''")
        made = [
            "CREATE EXTENSION IF NOT EXISTS vector",
            f"CREATE TABLE IF NOT EXISTS {self.table} (id text PRIMARY KEY, content text NOT NULL, "
            f"metadata jsonb NOT NULL, embedding vector({self._dimension}) NOT NULL)",
            f"COMMENT ON TABLE {self.table} IS '{note}'",
            # Without a list of pending entries, which every search would have to go through.
            f'CREATE INDEX IF NOT EXISTS "{self._plain}_metadata" ON {self.table} '
            "USING gin (metadata jsonb_path_ops) WITH (fastupdate = off)",
        ]
        if self._dimension <= MOST_INDEXED:
            # Vectors have length one, so that the inner product is the cosine.
            made.append(
                f'CREATE INDEX IF NOT EXISTS "{self._plain}_embedding_hnsw" ON {self.table} '
                "USING hnsw (embedding vector_ip_ops)"
            )
        return made

    def nearest(self, where: str) -> str:
        """The nearest by the index of vectors: vector, parameters of `where`, how many."""
        return (
            f"SELECT id, content, metadata, embedding <#> %s::vector AS distance FROM {self.table} "
            f"WHERE {where} ORDER BY distance LIMIT %s"
        )

    def scored(self, where: str, most: int | None) -> str:
        """The nearest of the first `most` that answer, all of them scored, and how many there were."""
        return (
            f"WITH mine AS MATERIALIZED (SELECT id, embedding <#> %s::vector AS distance FROM {self.table} "
            f"WHERE {where} LIMIT {'ALL' if most is None else most}), "
            "best AS (SELECT id, distance FROM mine ORDER BY distance, id LIMIT %s) "
            f"SELECT id, content, metadata, distance, (SELECT count(*) FROM mine) FROM best "
            f"JOIN {self.table} USING (id) ORDER BY distance, id"
        )

    @property
    def nature(self) -> str:
        """How many numbers the stored vectors have, and who made them."""
        return (
            "SELECT atttypmod, obj_description(attrelid, 'pg_class') FROM pg_attribute "
            f"WHERE attrelid = '{self.table}'::regclass AND attname = 'embedding'"
        )
