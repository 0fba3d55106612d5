"""Embedded texts in PostgreSQL with pgvector: for lessons that many processes share and that outlive them.

The pool and its connections are of the blocking kind and used in threads, so that one store serves any event
loop, one after the other (`reflexion_sync` makes a loop a call) or side by side.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

import numpy as np

from reflexio.agents.embedding import AnyEmbedder, embedder
from reflexio.agents.stores import Chunk, SearchResult
from reflexio.agents.vectors import statements
from reflexio.agents.vectors.diversity import checked, diverse, pool
from reflexio.agents.vectors.filters import EVERYWHERE, Condition, condition, sql
from reflexio.agents.vectors.intake import Vectors, taken, target
from reflexio.errors import InvalidRequest, StorageUnavailable

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg_pool import ConnectionPool

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]
CONNECT_SECONDS = 10
SCORED_OUTRIGHT = 4_000
"""Rows that answer a filter up to which all are scored: no index of vectors knows the filter, this is exact."""


class PostgresVectorStore:
    """Chunks and their vectors in one table, which is made when the store is first used.

    A search without a filter goes through the HNSW index. With one, the rows that answer it are found by an index
    on metadata and scored outright; when they are very many, HNSW is scanned until `k` of them are found, and if
    it gives up before, all are scored. Vectors of more than 2,000 numbers have no HNSW index: they are scanned.

    >>> store = PostgresVectorStore(dsn="postgresql://localhost/agents")  # doctest: +SKIP
    """

    def __init__(
        self,
        embedder_: AnyEmbedder | str | None = None,
        /,
        *,
        dsn: str,
        table: str = "reflexio_vectors",
        dimension: int | None = None,
        connections: int = 4,
    ) -> None:
        if find_spec("psycopg_pool") is None:
            raise ImportError("PostgresVectorStore needs a driver: pip install 'reflexio[postgres]'")
        self.embedder = embedder(embedder_)
        self.dimension = dimension or self.embedder.dimensions
        if self.dimension != self.embedder.dimensions:
            raise InvalidRequest(f"{self.embedder.name!r} gives {self.embedder.dimensions} numbers, not {dimension}.")
        self._dsn = dsn
        self._connections = connections
        self._sql = statements.Statements(table, self.dimension)
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

    async def add(self, chunks: Sequence[Chunk], ids: Sequence[str] | None = None) -> list[str]:
        """Stores chunks, all or none, and returns their ids. An id that is known already is replaced."""
        new = await taken(self.embedder, chunks, ids)
        told = [json.dumps(each) for each in new.metadata]
        rows = (new.ids, new.contents, told, [_literal(each) for each in new.vectors])
        await self._run(lambda connection: connection.execute(self._sql.add, rows))
        return new.ids if ids is None else list(ids)

    async def delete(self, ids: Sequence[str]) -> None:
        """Forgets chunks; unknown ids are passed over."""
        await self._run(lambda connection: connection.execute(self._sql.delete, [list(ids)]))

    async def count(self) -> int:
        ((found,),) = await self._run(lambda connection: connection.execute(self._sql.count).fetchall())
        return int(found)

    async def get_by_ids(self, ids: Sequence[str]) -> list[Chunk]:
        """Those that are there, in the order asked for."""
        rows = await self._run(lambda connection: connection.execute(self._sql.get, [list(ids)]).fetchall())
        found = {name: Chunk(content, metadata) for name, content, metadata in rows}
        return [found[each] for each in ids if each in found]

    async def bump(self, id: str, counts: Mapping[str, int]) -> None:  # noqa: A002
        """Adds to numbers in a chunk's metadata, in one go; an unknown id is passed over."""
        if counts:
            told = [json.dumps(dict(counts)), id]
            await self._run(lambda connection: connection.execute(self._sql.bump, told))

    async def search(
        self,
        query: str,
        *,
        k: int = 4,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        diversity: float | None = None,
    ) -> list[SearchResult]:
        """The `k` chunks nearest to a text, best first, of those that answer the filter."""
        vector = await self.embedder.embed(query)
        return await self.search_by_vector(vector, k=k, filter=filter, diversity=diversity)

    async def search_by_vector(
        self,
        vector: Sequence[float],
        *,
        k: int = 4,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        diversity: float | None = None,
    ) -> list[SearchResult]:
        """The `k` chunks nearest to a vector, best first, of those that answer the filter."""
        checked(k, diversity)
        query = target(vector, self.dimension)
        asked, most = condition(filter), pool(k, diversity)
        rows = await self._run(lambda connection: self._nearest(connection, query, asked, most))
        if diversity:
            rows = await self._varied(rows, k, diversity)
        return [
            SearchResult(Chunk(content, metadata), -distance, name) for name, content, metadata, distance, *_ in rows
        ]

    def _nearest(self, connection: "Connection[Any]", query: Vectors, asked: Condition, k: int) -> list[Row]:
        where, parameters = sql(asked)
        words = [_literal(query), *parameters, k]
        if asked != EVERYWHERE:
            rows = connection.execute(self._sql.scored(where, SCORED_OUTRIGHT + 1), words).fetchall()
            if not rows or rows[0][4] <= SCORED_OUTRIGHT:
                return rows
        rows = connection.execute(self._sql.nearest(where), words).fetchall()
        if len(rows) == k:
            return rows
        return connection.execute(self._sql.scored(where, None), words).fetchall()

    async def _varied(self, rows: list[Row], k: int, diversity: float) -> list[Row]:
        ids = [row[0] for row in rows]
        found = dict(await self._run(lambda connection: connection.execute(self._sql.vectors, [ids]).fetchall()))
        rows = [row for row in rows if row[0] in found]
        scores = np.array([-row[3] for row in rows], np.float32)
        vectors = np.array([found[row[0]] for row in rows], np.float32).reshape(len(rows), self.dimension)
        return [rows[place] for place in diverse(scores, vectors, k, diversity)]

    async def _run(self, work: "Callable[[Connection[Any]], T]") -> T:
        return await asyncio.to_thread(self._with_connection, work)

    def _with_connection(self, work: "Callable[[Connection[Any]], T]") -> T:
        import psycopg

        try:
            with self._opened().connection() as connection:
                return work(connection)
        except (psycopg.DataError, UnicodeEncodeError) as error:
            raise InvalidRequest(f"PostgreSQL cannot store this text: {error}") from error
        except psycopg.Error as error:
            raise StorageUnavailable(str(error)) from error

    def _opened(self) -> "ConnectionPool[Connection[Any]]":
        from psycopg_pool import ConnectionPool

        with self._opening:
            if self._pool is None:
                self._make_schema()
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

    def _make_schema(self) -> None:
        """Also the first connection: whatever is wrong with the address is said here, at once."""
        import psycopg

        with psycopg.connect(self._dsn, connect_timeout=CONNECT_SECONDS) as connection:
            ((known,),) = connection.execute("SELECT to_regclass(%s)", [self._sql.table]).fetchall()
            if known is None:
                connection.execute("SELECT pg_advisory_xact_lock(%s)", [statements.LOCK])
                for statement in self._sql.schema(self.embedder.name):
                    connection.execute(statement)
            ((width, filled_by),) = connection.execute(self._sql.nature).fetchall()
        mine = statements.NOTE.format(self.embedder.name)
        if width != self.dimension or filled_by not in (mine, None):
            raise InvalidRequest(
                f"The table {self._sql.table} holds {filled_by or 'vectors'} of {width} numbers, not those of "
                f"{self.embedder.name!r} with {self.dimension}. Name another table, or the embedder that filled this."
            )


def _configure(connection: "Connection[Any]") -> None:
    for statement in statements.SESSION:
        connection.execute(statement)


def _literal(vector: Vectors) -> str:
    return f"[{','.join(map(repr, vector.tolist()))}]"
