"""Candidates are compared with the stored vectors of their neighbours."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reflexio.learning.consolidate import find_neighbours
from reflexio.models.extraction import ExtractedLearning
from reflexio.models.learning import Kind, Learning, Status
from reflexio.ports.storage import NO_VECTORS, Database, TextVectors
from reflexio.providers.scripted import ScriptedEmbedder
from reflexio.retrieval.immediate import ImmediateEmbedder
from reflexio.storage.sqlite import open_sqlite


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = open_sqlite(tmp_path / "reflexio.db")
    yield database
    await database.close()


STORED = ("I drink green tea.", "I drink black tea.")
CANDIDATE = ExtractedLearning(Kind.PROFILE, "profile", "I drink green tea at noon.")


async def neighbours(database: Database, vectors: TextVectors) -> tuple[list[tuple[str, float]], list[str]]:
    """The neighbours of the candidate with their cosines, and the texts that were embedded."""
    store, embedder = database.of("org"), ScriptedEmbedder()
    rows = [Learning(Kind.PROFILE, text, key=text, user_id="ann") for text in STORED]
    await store.write(lambda tx: tx.learnings.add(rows, vectors))
    (found,) = await find_neighbours(store, embedder, "ann", [CANDIDATE], Status.CURRENT)
    pairs = [(neighbour.learning.content, round(neighbour.similarity, 2)) for neighbour in found.neighbours]
    return pairs, [text for call in embedder.calls for text in call]


async def test_stored_vectors_are_used_and_nothing_stored_is_embedded_again(database: Database) -> None:
    vectors = await ImmediateEmbedder(ScriptedEmbedder()).embed(STORED)
    pairs, embedded = await neighbours(database, vectors)
    assert [content for content, _ in pairs] == list(STORED)
    assert embedded == [CANDIDATE.text]


async def test_rows_without_a_vector_are_embedded_and_give_the_same_neighbours(database: Database) -> None:
    pairs, embedded = await neighbours(database, NO_VECTORS)
    assert [content for content, _ in pairs] == list(STORED)
    assert set(embedded) == {CANDIDATE.text, *STORED}
