# ruff: noqa: A002, S608  `filter` and `id` are names of the protocol; the table's name is checked
"""A vector store in PostgreSQL with pgvector: for lessons that many processes share and that outlive them.

The connection pool is synchronous and used in threads, so that one store serves any event loop, one after the other
(`reflexion_sync` creates a loop for each call) or several at once.
"""

import asyncio
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

import numpy as np

from reflexio.agents.vectors.embedding import (
    EmbeddedChunks,
    EmbedderChoice,
    EmbeddingStore,
    Vectors,
    choose_diverse,
    pool_size,
)
from reflexio.agents.vectors.embedding import embedder as resolve_embedder
from reflexio.agents.vectors.store import (
    ALWAYS,
    AllOf,
    AnyOf,
    Chunk,
    Condition,
    Not,
    OneOf,
    Ordered,
    Present,
    SearchResult,
)
from reflexio.errors import InvalidRequest, StorageUnavailable

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg_pool import ConnectionPool

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]
CONNECT_SECONDS = 10
MAX_EXACT_ROWS = 4_000
"""Up to so many rows that match a filter, all are scored: the vector index ignores the filter, and this is exact."""
MAX_INDEXED_DIMENSIONS = 2_000
"""pgvector creates HNSW indexes for vectors of up to this many numbers."""
SCHEMA_LOCK = 7_365_251_033
"""Held while the schema is created: concurrent CREATE IF NOT EXISTS statements can fail."""
TABLE_COMMENT = "Vectors by {}"
SESSION = (
    "SET hnsw.iterative_scan = strict_order",
    "SET hnsw.max_scan_tuples = 100000",
    # A generic plan has wrong estimates for most users.
    "SET plan_cache_mode = force_custom_plan",
)
_TABLE_NAME = re.compile(r"(?:[a-z_][a-z0-9_]{0,40}\.)?[a-z_][a-z0-9_]{0,40}", re.IGNORECASE)


class PostgresVectorStore(EmbeddingStore):
    """Chunks and their vectors in one table, which is created on first use.

    A search without a filter uses the HNSW index. With a filter, an index on metadata finds the matching rows, and
    all of them are scored; when they are very many, HNSW is scanned until `k` matches are found, and if it stops
    before, all are scored. Vectors of more than 2,000 numbers have no HNSW index: they are scanned.

    >>> store = PostgresVectorStore(dsn="postgresql://localhost/agents")  # doctest: +SKIP
    """

    def __init__(
        self,
        embedder: EmbedderChoice = None,
        *,
        dsn: str,
        table: str = "reflexio_vectors",
        dimension: int | None = None,
        connections: int = 4,
    ) -> None:
        if find_spec("psycopg_pool") is None:
            raise ImportError("PostgresVectorStore needs a driver: pip install 'reflexio-learn[postgres]'")
        self.embedder = resolve_embedder(embedder)
        self.dimension = dimension or self.embedder.dimensions
        if self.dimension != self.embedder.dimensions:
            raise InvalidRequest(f"{self.embedder.name!r} gives {self.embedder.dimensions} numbers, not {dimension}.")
        if not _TABLE_NAME.fullmatch(table):
            raise InvalidRequest(
                f"{table!r} is no name for a table: use at most 41 letters, digits and _, optionally after a schema."
            )
        self._table = ".".join(f'"{part}"' for part in table.split("."))
        self._dsn = dsn
        self._connections = connections
        self._opening = threading.Lock()
        self._pool: ConnectionPool[Connection[Any]] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections. The store opens new ones when it is used again."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with self._opening:
            if self._pool is not None:
                self._pool.close()
                self._pool = None

    async def _insert(self, new: EmbeddedChunks) -> None:
        vectors = [_literal(vector) for vector in new.vectors]
        await self._execute(
            f"INSERT INTO {self._table} (id, content, metadata, embedding) "
            "SELECT * FROM unnest(%s::text[], %s::text[], %s::jsonb[], %s::vector[]) "
            "ON CONFLICT (id) DO UPDATE SET content = excluded.content, metadata = excluded.metadata, "
            "embedding = excluded.embedding",
            new.ids,
            new.contents,
            list(map(json.dumps, new.metadata)),
            vectors,
        )

    async def delete(self, ids: Sequence[str]) -> None:
        """Deletes chunks; unknown ids are ignored."""
        await self._execute(f"DELETE FROM {self._table} WHERE id = ANY(%s::text[])", list(ids))

    async def count(self) -> int:
        ((count,),) = await self._execute(f"SELECT count(*) FROM {self._table}")
        return int(count)

    async def get_by_ids(self, ids: Sequence[str]) -> list[Chunk]:
        """The chunks that exist, in the order of `ids`."""
        statement = f"SELECT id, content, metadata FROM {self._table} WHERE id = ANY(%s::text[])"
        chunks = {row[0]: Chunk(row[1], row[2]) for row in await self._execute(statement, list(ids))}
        return [chunks[chunk_id] for chunk_id in ids if chunk_id in chunks]

    async def bump(self, id: str, counts: Mapping[str, int]) -> None:
        """Adds to numbers in a chunk's metadata atomically; an unknown id is ignored."""
        if counts:
            await self._execute(
                f"UPDATE {self._table} AS kept SET metadata = metadata || (SELECT jsonb_object_agg(more.key, "
                "coalesce((kept.metadata -> more.key)::numeric, 0) + more.value::numeric) "
                "FROM jsonb_each(%s::jsonb) AS more) WHERE id = %s",
                json.dumps(dict(counts)),
                id,
            )

    async def _nearest(self, query: Vectors, condition: Condition, k: int, diversity: float) -> list[SearchResult]:
        pool = pool_size(k, diversity)
        rows = await self._run(lambda connection: self._nearest_rows(connection, query, condition, pool))
        if diversity:
            statement = f"SELECT id, embedding::real[] FROM {self._table} WHERE id = ANY(%s::text[])"
            vectors: dict[str, list[float]] = dict(await self._execute(statement, [row[0] for row in rows]))
            rows = [row for row in rows if row[0] in vectors]
            scores = np.array([-row[3] for row in rows], np.float32)
            pooled = np.array([vectors[row[0]] for row in rows], np.float32).reshape(len(rows), self.dimension)
            rows = [rows[position] for position in choose_diverse(scores, pooled, k, diversity)]
        return [SearchResult(Chunk(row[1], row[2]), -row[3], row[0]) for row in rows]

    def _nearest_rows(self, connection: "Connection[Any]", query: Vectors, condition: Condition, k: int) -> list[Row]:
        where, operands = to_sql(condition)
        parameters = [_literal(query), *operands, k]
        if condition != ALWAYS:
            rows = connection.execute(self._exact_search(where, str(MAX_EXACT_ROWS + 1)), parameters).fetchall()
            if not rows or rows[0][4] <= MAX_EXACT_ROWS:
                return rows
        by_index = (
            f"SELECT id, content, metadata, embedding <#> %s::vector AS distance FROM {self._table} "
            f"WHERE {where} ORDER BY distance LIMIT %s"
        )
        rows = connection.execute(by_index, parameters).fetchall()
        if len(rows) == k:
            return rows
        return connection.execute(self._exact_search(where, "ALL"), parameters).fetchall()

    def _exact_search(self, where: str, limit: str) -> str:
        """Scores the first `limit` matching rows; the last column of a hit is their number."""
        return (
            f"WITH mine AS MATERIALIZED (SELECT id, embedding <#> %s::vector AS distance FROM {self._table} "
            f"WHERE {where} LIMIT {limit}), "
            "best AS (SELECT id, distance FROM mine ORDER BY distance, id LIMIT %s) "
            f"SELECT id, content, metadata, distance, (SELECT count(*) FROM mine) FROM best "
            f"JOIN {self._table} USING (id) ORDER BY distance, id"
        )

    async def _execute(self, statement: str, *parameters: Any) -> list[Row]:
        def work(connection: "Connection[Any]") -> list[Row]:
            cursor = connection.execute(statement, parameters)
            return cursor.fetchall() if cursor.description else []

        return await self._run(work)

    async def _run(self, work: "Callable[[Connection[Any]], T]") -> T:
        return await asyncio.to_thread(self._with_connection, work)

    def _with_connection(self, work: "Callable[[Connection[Any]], T]") -> T:
        import psycopg

        try:
            with self._open_pool().connection() as connection:
                return work(connection)
        except (psycopg.DataError, UnicodeEncodeError) as error:
            raise InvalidRequest(f"PostgreSQL cannot store this text: {error}") from error
        except psycopg.Error as error:
            raise StorageUnavailable(str(error)) from error

    def _open_pool(self) -> "ConnectionPool[Connection[Any]]":
        from psycopg_pool import ConnectionPool

        with self._opening:
            if self._pool is None:
                self._create_table()
                self._pool = ConnectionPool(
                    self._dsn,
                    min_size=1,
                    max_size=self._connections,
                    kwargs={"autocommit": True},
                    configure=_configure,
                    check=ConnectionPool.check_connection,
                    timeout=CONNECT_SECONDS,
                    open=True,
                )
            return self._pool

    def _create_table(self) -> None:
        """Also the first connection: a wrong address is reported here at once."""
        import psycopg

        description = (
            "SELECT atttypmod, obj_description(attrelid, 'pg_class') FROM pg_attribute "
            f"WHERE attrelid = '{self._table}'::regclass AND attname = 'embedding'"
        )
        with psycopg.connect(self._dsn, connect_timeout=CONNECT_SECONDS) as connection:
            ((known,),) = connection.execute("SELECT to_regclass(%s)", [self._table]).fetchall()
            if known is None:
                connection.execute("SELECT pg_advisory_xact_lock(%s)", [SCHEMA_LOCK])
                for statement in self._schema():
                    connection.execute(statement)
            ((width, comment),) = connection.execute(description).fetchall()
        if width != self.dimension or comment not in (TABLE_COMMENT.format(self.embedder.name), None):
            raise InvalidRequest(
                f"The table {self._table} holds {comment or 'vectors'} of {width} numbers, not those of "
                f"{self.embedder.name!r} with {self.dimension}. Use another table or the embedder that filled this one."
            )

    def _schema(self) -> list[str]:
        """The comment names the embedder, since vectors of two embedders cannot be compared."""
        comment = TABLE_COMMENT.format(self.embedder.name).replace("'", "''")
        name = self._table.split(".")[-1].strip('"')
        statements = [
            "CREATE EXTENSION IF NOT EXISTS vector",
            f"CREATE TABLE IF NOT EXISTS {self._table} (id text PRIMARY KEY, content text NOT NULL, "
            f"metadata jsonb NOT NULL, embedding vector({self.dimension}) NOT NULL)",
            f"COMMENT ON TABLE {self._table} IS '{comment}'",
            # Without a list of pending entries, which every search would have to read.
            f'CREATE INDEX IF NOT EXISTS "{name}_metadata" ON {self._table} '
            "USING gin (metadata jsonb_path_ops) WITH (fastupdate = off)",
        ]
        if self.dimension <= MAX_INDEXED_DIMENSIONS:
            # Vectors have length one, so the inner product is the cosine.
            statements.append(
                f'CREATE INDEX IF NOT EXISTS "{name}_embedding_hnsw" ON {self._table} '
                "USING hnsw (embedding vector_ip_ops)"
            )
        return statements


def _configure(connection: "Connection[Any]") -> None:
    for statement in SESSION:
        connection.execute(statement)


def _literal(vector: Vectors) -> str:
    return f"[{','.join(map(repr, vector.tolist()))}]"


def to_sql(condition: Condition) -> tuple[str, list[Any]]:
    """SQL about a jsonb column `metadata` that is true or false and never null, with its parameters."""
    match condition:
        case OneOf(key, values):
            return _join_sql(" OR ", [_equals_sql(key, value) for value in values], "FALSE")
        case Ordered(key, sign, value):
            # Python orders strings by code point; only the C collation does so, too.
            kind, stored, operand = (
                ("string", '(metadata ->> %s::text) COLLATE "C"', "%s::text")
                if isinstance(value, str)
                else ("number", "(metadata -> %s::text)", "%s::jsonb")
            )
            text = f"coalesce(jsonb_typeof(metadata -> %s::text) = '{kind}' AND {stored} {sign} {operand}, FALSE)"
            return text, [key, key, value if isinstance(value, str) else json.dumps(value)]
        case Present(key):
            return "(metadata ? %s::text)", [key]
        case Not(inner):
            text, parameters = to_sql(inner)
            return f"(NOT {text})", parameters
        case AllOf(parts):
            return _join_sql(" AND ", list(map(to_sql, parts)), "TRUE")
        case AnyOf(parts):
            return _join_sql(" OR ", list(map(to_sql, parts)), "FALSE")


def _equals_sql(key: str, value: Any) -> tuple[str, list[Any]]:
    if value is None:
        return "coalesce(metadata -> %s::text = 'null', TRUE)", [key]
    if isinstance(value, list | dict):
        return "coalesce(metadata -> %s::text = %s::jsonb, FALSE)", [key, json.dumps(value)]
    # For a scalar, containing is equal to equality, and containment has an index.
    return "(metadata @> %s::jsonb)", [json.dumps({key: value})]


def _join_sql(word: str, parts: list[tuple[str, list[Any]]], if_empty: str) -> tuple[str, list[Any]]:
    text = f"({word.join(text for text, _ in parts)})" if parts else if_empty
    return text, [parameter for _, parameters in parts for parameter in parameters]
