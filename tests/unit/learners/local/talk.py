"""Conversations for the local learner, and what it makes of them."""

from collections.abc import Iterable

from reflexio.learners.local.learner import LocalLearner
from reflexio.learning.evidence import grounded
from reflexio.models.config import Config
from reflexio.models.extraction import ExtractedLearning, Turn, Window
from reflexio.models.learning import Kind
from reflexio.ports.embedding import Embedder
from reflexio.providers.scripted import ScriptedEmbedder

BOTH = frozenset((Kind.PROFILE, Kind.USER_PLAYBOOK))


def talk(*said: str) -> tuple[Turn, ...]:
    """User and agent by turns, the user first."""
    return tuple(Turn(place + 1, "agent" if place % 2 else "user", words) for place, words in enumerate(said))


async def extracted(
    turns: Iterable[Turn],
    *,
    config: Config | None = None,
    kinds: frozenset[Kind] = BOTH,
    embedder: Embedder | None = None,
) -> tuple[ExtractedLearning, ...]:
    """What the learner extracts, whether or not it is evidence enough to be kept."""
    learner = LocalLearner(embedder or ScriptedEmbedder())
    return (await learner.extract(Window("ann", "v1", tuple(turns)), config or Config(), kinds)).candidates


async def learned(
    turns: Iterable[Turn],
    *,
    config: Config | None = None,
    kinds: frozenset[Kind] = BOTH,
    embedder: Embedder | None = None,
) -> tuple[ExtractedLearning, ...]:
    turns = tuple(turns)
    candidates = await extracted(turns, config=config, kinds=kinds, embedder=embedder)
    kept, dropped = grounded(Window("ann", "v1", turns), candidates)
    assert (len(kept), dropped) == (len(candidates), 0), "what the learner quotes is evidence"
    return candidates


def assert_grounded(found: Iterable[ExtractedLearning], turns: Iterable[Turn]) -> None:
    """Every quote stands in its turn, and at least one of them in a new one."""
    by_id = {turn.id: turn for turn in turns}
    for each in found:
        assert each.evidence
        assert any(by_id[quote.turn_id].is_new for quote in each.evidence)
        for quote in each.evidence:
            turn = by_id[quote.turn_id]
            tools = " ".join(str(word) for call in turn.tools for word in (call.status, *call.data.values()))
            assert quote.text in (turn.content + "\n" + turn.expert_content + "\n" + tools), quote
