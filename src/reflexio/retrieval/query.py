"""The query's vector. Without an embedder that answers in time, words decide alone.

Names of persons are left out of the vector wherever words are searched too: a name pulls a vector towards every row
that contains it, whatever the row says, and words match the name better. Only names of those who do or own something,
as English writes it, are left out: a place or a thing is part of the question.
"""

import asyncio
import logging
import re

from reflexio.errors import ProviderError
from reflexio.models.search import SearchMode
from reflexio.ports.embedding import Embedder
from reflexio.ports.storage import QueryVector
from reflexio.retrieval.calibration import UNCALIBRATED, Calibration, calibrate

log = logging.getLogger("reflexio.search")

TIMEOUT_SECONDS = 3.0
"""How long a search waits for its query's vector."""
RECALIBRATE_SECONDS = 30.0
"""How long after a failed calibration the next query starts another one."""
LONGEST_QUERY = 4_000
"""Characters of a query that are embedded; models read no further."""


class QueryEmbedder:
    """The embedder in use. It is calibrated beside its first query and fully trusted until then."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.calibration = UNCALIBRATED
        self._calibrating: asyncio.Task[Calibration] | None = None
        self._next_attempt = 0.0

    async def embed(self, text: str, mode: SearchMode) -> QueryVector | None:
        """The query's vector, or None when words must decide alone."""
        if mode is SearchMode.FTS or not text.strip():
            return None
        embedded_text = without_names(text[:LONGEST_QUERY]) if mode is SearchMode.HYBRID else text[:LONGEST_QUERY]
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                vectors = await self.embedder.embed([embedded_text])
        except ProviderError as error:
            log.warning("searching by words alone: %s", error)
            return None
        except TimeoutError:
            log.warning("searching by words alone: the embedder did not answer within %g s", TIMEOUT_SECONDS)
            return None
        self._calibrate_when_due()
        return QueryVector(self.embedder.name, tuple(vectors[0].tolist()))

    def _calibrate_when_due(self) -> None:
        loop = asyncio.get_running_loop()
        if self._calibrating is None and loop.time() >= self._next_attempt:
            self._calibrating = loop.create_task(calibrate(self.embedder))
            self._calibrating.add_done_callback(self._keep_calibration)

    def _keep_calibration(self, task: "asyncio.Task[Calibration]") -> None:
        if task.cancelled():
            return
        if error := task.exception():
            log.warning("the embedder could not be calibrated and is trusted until it can: %s", error)
            self._calibrating, self._next_attempt = None, task.get_loop().time() + RECALIBRATE_SECONDS
        else:
            self.calibration = task.result()


_NAME = "[A-ZÀ-ÖØ-Þ][a-zß-ÿ]+(?:[-'’]?[A-ZÀ-ÖØ-Þ][a-zß-ÿ]+)*"
_VERB = "(?i:do|does|did|is|are|was|were|has|have|had|will|would|can|could|shall|should|may|might|must)"
_DOING = re.compile(rf"\b({_VERB})\s+{_NAME}(?:\s+(?:and\s+)?{_NAME}){{0,3}}(?=[\s?.!,;:]|$)")
_OWNING = re.compile(rf"(?<=\w ){_NAME}['’]s\s+")
_LEAST_WORDS = 3


def without_names(question: str) -> str:
    """The question without the names in it; unchanged where too little would be left.

    >>> without_names("When did Ada and Bob go to Paris?")
    'When did go to Paris?'
    >>> without_names("What is Ada's favourite dish?")
    'What is favourite dish?'
    """
    words = question.split()
    if sum(word[0].isupper() for word in words) * 2 > len(words):
        return question
    nameless = _OWNING.sub("", _DOING.sub(r"\1", question))
    return nameless if len(nameless.split()) >= _LEAST_WORDS else question
