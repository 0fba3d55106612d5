import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from reflexio.errors import ProviderUnavailable
from reflexio.providers.scripted import ScriptedEmbedder
from reflexio.retrieval import immediate
from reflexio.retrieval.immediate import MOST_TEXTS, ImmediateEmbedder


class Failing(ScriptedEmbedder):
    """Fails or hangs while `fault` says so, and counts the calls."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault
        self.count = 0

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.count += 1
        if self.fault == "fails":
            raise ProviderUnavailable("busy")
        if self.fault == "hangs":
            await asyncio.Event().wait()
        return await super().embed(texts)


async def test_each_text_is_embedded_once_and_blank_ones_never() -> None:
    inner = ScriptedEmbedder()
    vectors = await ImmediateEmbedder(inner).embed(["tea", " ", "tea", "cup"])
    assert inner.calls == [("tea", "cup")]
    assert set(vectors.of) == {"tea", "cup"}
    assert vectors.model == inner.name


async def test_an_import_is_left_to_the_background() -> None:
    inner = ScriptedEmbedder()
    texts = [f"row {number}" for number in range(MOST_TEXTS + 1)]
    assert not (await ImmediateEmbedder(inner).embed(texts)).of
    assert len((await ImmediateEmbedder(inner).embed(texts[1:])).of) == MOST_TEXTS


@pytest.mark.parametrize("fault", ["fails", "hangs"])
async def test_after_a_failure_writes_do_not_wait_for_a_while(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    monkeypatch.setattr(immediate, "WAIT_SECONDS", 0)
    inner = Failing(fault)
    embedder = ImmediateEmbedder(inner)
    for _ in range(3):
        assert not (await embedder.embed(["tea"])).of
    assert inner.count == 1
    inner.fault = ""
    monkeypatch.setattr(embedder, "_paused_until", 0.0)
    monkeypatch.setattr(immediate, "WAIT_SECONDS", 2)
    assert set((await embedder.embed(["tea"])).of) == {"tea"}
