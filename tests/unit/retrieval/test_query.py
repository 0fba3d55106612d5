import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from reflexio.errors import ProviderUnavailable
from reflexio.models.search import SearchMode
from reflexio.retrieval import query
from reflexio.retrieval.calibration import UNCALIBRATED
from reflexio.retrieval.query import QueryEmbedder


class OnAndOff:
    """Answers queries always, and many texts at once only when it is `up`."""

    name = "on and off"
    dimensions = 4

    def __init__(self) -> None:
        self.up = False
        self.exams = 0
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.exams += len(texts) > 1
        self.asked += texts if len(texts) == 1 else []
        if len(texts) > 1 and not self.up:
            raise ProviderUnavailable("Try again later.")
        return np.eye(4, dtype=np.float32)[[len(text) % 4 for text in texts]]

    async def aclose(self) -> None: ...


async def ask(asked: QueryEmbedder) -> None:
    await asked.embed("refund", SearchMode.HYBRID)
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_an_exam_that_failed_is_tried_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = OnAndOff()
    asked = QueryEmbedder(embedder)
    await ask(asked)
    await ask(asked)
    assert (embedder.exams, asked.calibration) == (1, UNCALIBRATED)
    monkeypatch.setattr(query, "RECALIBRATE_SECONDS", 0.0)
    asked = QueryEmbedder(embedder)
    await ask(asked)
    embedder.up = True
    await ask(asked)
    assert asked.calibration is not UNCALIBRATED
    taken = embedder.exams
    await ask(asked)
    assert embedder.exams == taken


async def test_names_are_left_to_the_words_where_words_are_asked() -> None:
    embedder = OnAndOff()
    asked = QueryEmbedder(embedder)
    for mode in (SearchMode.HYBRID, SearchMode.VECTOR, SearchMode.FTS):
        await asked.embed("Where did Ada go?", mode)
    assert embedder.asked == ["Where did go?", "Where did Ada go?"]
