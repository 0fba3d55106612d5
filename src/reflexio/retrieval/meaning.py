"""Queries as numbers. Without an embedder that answers in time, words decide alone."""

import asyncio
import logging

from reflexio.errors import ProviderError
from reflexio.models.search import SearchMode
from reflexio.ports.embedding import Embedder
from reflexio.ports.storage import QueryVector
from reflexio.retrieval.exam import UNEXAMINED, Grade, examine
from reflexio.retrieval.names import without_names

log = logging.getLogger("reflexio.search")

PATIENCE = 3.0
"""Seconds that a search waits for its query's vector."""
EXAM_AGAIN = 30.0
"""Seconds after which an exam that failed is tried again, beside the next query."""
START = 4_000
"""Characters of a query that are embedded; models read no further."""


class Meaning:
    """The embedder in use. It is examined beside its first query and trusted until then."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.grade = UNEXAMINED
        self._exam: asyncio.Task[Grade] | None = None
        self._next_exam = 0.0

    async def of(self, text: str, mode: SearchMode) -> QueryVector | None:
        """The query as numbers, or None when words must do. Where words are asked too, names are left to them."""
        if mode is SearchMode.FTS or not text.strip():
            return None
        meant = without_names(text[:START]) if mode is SearchMode.HYBRID else text[:START]
        try:
            async with asyncio.timeout(PATIENCE):
                vectors = await self.embedder.embed([meant])
        except ProviderError as error:
            log.warning("searching by words alone: %s", error)
            return None
        except TimeoutError:
            log.warning("searching by words alone: the embedder did not answer within %g s", PATIENCE)
            return None
        self._examine_when_due()
        return QueryVector(self.embedder.name, tuple(vectors[0].tolist()))

    def _examine_when_due(self) -> None:
        loop = asyncio.get_running_loop()
        if self._exam is None and loop.time() >= self._next_exam:
            self._exam = loop.create_task(examine(self.embedder))
            self._exam.add_done_callback(self._graded)

    def _graded(self, exam: "asyncio.Task[Grade]") -> None:
        if exam.cancelled():
            return
        if error := exam.exception():
            log.warning("the embedder could not be examined and is trusted until it can: %s", error)
            self._exam, self._next_exam = None, exam.get_loop().time() + EXAM_AGAIN
        else:
            self.grade = exam.result()
