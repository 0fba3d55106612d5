"""Whether a fact holds whatever is asked, by words and by meaning."""

import asyncio

import pytest
from tests.bench.context_quality import PAIRS

from reflexio.models.learning import Kind, Learning, Scope
from reflexio.providers.embedding.local import LocalEmbedder
from reflexio.retrieval.scope import ScopeClassifier

LINES = (PAIRS.with_name("fact_scopes.txt")).read_text(encoding="utf-8").splitlines()
STATEMENTS = [(line[2:], Scope.ALWAYS if line[0] == "A" else Scope.WHEN_RELEVANT) for line in LINES if line[0] != "#"]


@pytest.fixture(scope="module")
def decided() -> dict[str, Scope]:
    async def decide() -> list[Scope]:
        embedder = LocalEmbedder()
        try:
            return await ScopeClassifier(embedder).decide([Learning(Kind.PROFILE, text) for text, _ in STATEMENTS])
        finally:
            await embedder.aclose()

    return dict(zip((text for text, _ in STATEMENTS), asyncio.run(decide()), strict=True))


def test_what_users_are_and_have_holds_always(decided: dict[str, Scope]) -> None:
    always = [text for text, scope in STATEMENTS if scope is Scope.ALWAYS]
    missed = [text for text in always if decided[text] is not Scope.ALWAYS]
    assert len(missed) <= 0.05 * len(always), missed


def test_likes_plans_and_events_do_not(decided: dict[str, Scope]) -> None:
    relevant = [text for text, scope in STATEMENTS if scope is Scope.WHEN_RELEVANT]
    wrong = [text for text in relevant if decided[text] is Scope.ALWAYS]
    assert len(wrong) <= 0.05 * len(relevant), wrong
