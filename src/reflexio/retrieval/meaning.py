"""Queries as numbers. Without an embedder that answers in time, words decide alone."""

import asyncio
import logging

from reflexio.errors import ProviderError
from reflexio.models.search import SearchMode
from reflexio.ports.embedding import Embedder
from reflexio.ports.storage import QueryVector
from reflexio.retrieval.exam import UNEXAMINED, Grade, examine

log = logging.getLogger("reflexio.search")

PATIENCE = 3.0
"""Seconds that a search waits for its query's vector."""
START = 4_000
"""Characters of a query that are embedded; models read no further."""


class Meaning:
    """The embedder in use. It is examined once, beside its first query, and trusted until then."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.grade = UNEXAMINED
        self._exam: asyncio.Task[Grade] | None = None

    async def of(self, text: str, mode: SearchMode) -> QueryVector | None:
        """The query as numbers, or None when words must do."""
        if mode is SearchMode.FTS or not text.strip():
            return None
        try:
            async with asyncio.timeout(PATIENCE):
                vectors = await self.embedder.embed([text[:START]])
        except ProviderError as error:
            log.warning("searching by words alone: %s", error)
            return None
        except TimeoutError:
            log.warning("searching by words alone: the embedder did not answer within %g s", PATIENCE)
            return None
        self._examine_once()
        return QueryVector(self.embedder.name, tuple(vectors[0].tolist()))

    def _examine_once(self) -> None:
        if self._exam is None:
            self._exam = asyncio.get_running_loop().create_task(examine(self.embedder))
            self._exam.add_done_callback(self._graded)

    def _graded(self, exam: "asyncio.Task[Grade]") -> None:
        if exam.cancelled():
            return
        if error := exam.exception():
            log.warning("the embedder could not be examined and is trusted: %s", error)
        else:
            self.grade = exam.result()
