"""Facts and orders in words that no pattern knows, and remarks that teach nothing."""

import asyncio
from collections.abc import Iterator

import numpy as np
import pytest

from reflexio.learners.local.learner import LocalLearner
from reflexio.learners.local.statements import CLASSES, VECTORS, digest_of_prototypes, form_of, prototypes
from reflexio.models.config import Config
from reflexio.models.extraction import Turn, Window
from reflexio.models.learning import Kind
from reflexio.providers.embedding.local import LocalEmbedder
from tests.bench.statements import KINDS, learned, parts


@pytest.fixture(scope="module")
def embedder() -> Iterator[LocalEmbedder]:
    local = LocalEmbedder()
    yield local
    asyncio.run(local.aclose())


def test_the_stored_vectors_are_those_of_the_prototypes(embedder: LocalEmbedder) -> None:
    with np.load(VECTORS) as stored:
        assert (str(stored["embedder"]), str(stored["digest"])) == (embedder.name, digest_of_prototypes())
        for name in CLASSES:
            vectors = asyncio.run(embedder.embed(prototypes(name)[:10]))
            assert stored[name].shape[0] == len(prototypes(name))
            assert np.allclose(stored[name][:10].astype(np.float32), vectors, atol=2e-3)


@pytest.mark.parametrize("part", [name for name in parts() if name.startswith("learn")])
def test_most_plain_statements_are_learned(part: str, embedder: LocalEmbedder) -> None:
    lines = parts()[part]
    found = asyncio.run(learned(embedder, lines))
    assert len(found) >= 0.7 * len(lines), [said for _, said in lines if said not in found]


@pytest.mark.parametrize("part", [name for name in parts() if name.startswith("idle")])
def test_remarks_and_tasks_teach_nothing(part: str, embedder: LocalEmbedder) -> None:
    lines = parts()[part]
    assert len(asyncio.run(learned(embedder, lines))) <= 0.02 * len(lines)


def taught(embedder: LocalEmbedder, *messages: str) -> list[tuple[Kind, str, str]]:
    """What the last of these messages teaches, of user and agent by turns."""
    turns = tuple(
        Turn(place + 1, "agent" if place % 2 else "user", text, is_new=place == len(messages) - 1)
        for place, text in enumerate(messages)
    )
    window = Window("ann", "v1", turns)
    candidates = asyncio.run(LocalLearner(embedder).extract(window, Config(), KINDS)).candidates
    return sorted((candidate.kind, candidate.trigger, candidate.content) for candidate in candidates)


def test_a_sentence_with_a_fact_and_an_order_teaches_both(embedder: LocalEmbedder) -> None:
    assert taught(embedder, "I'm 81 and I see very badly, so please use short sentences.") == [
        (Kind.PROFILE, "", "The user is 81."),
        (Kind.PROFILE, "", "The user sees very badly."),
        (Kind.USER_PLAYBOOK, "", "Please use short sentences."),
    ]


def test_an_answer_to_a_question_of_the_agent_is_no_order(embedder: LocalEmbedder) -> None:
    assert taught(embedder, "Book a table.", "Inside or on the terrace?", "Only inside please.") == []


@pytest.mark.parametrize(
    "text",
    ["Make it shorter", "Say that in one sentence", "tell me what my balance is", "I like this one", "Stop talking"],
)
def test_what_is_at_hand_is_neither_fact_nor_order(text: str) -> None:
    assert form_of(text) == ""
