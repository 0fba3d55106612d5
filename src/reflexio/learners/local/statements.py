"""Facts and standing orders in words that no pattern knows, by their nearness to prototypes of what lasts.

A clause counts when it speaks of its speaker, or tells the agent what to do, and is clearly nearer to the prototypes of
lasting facts or of standing orders than to those of requests, problems and events. English only: the built-in embedder
reads no other language well.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reflexio.language.words import CueFile, content_words
from reflexio.learners.local.candidates import RuleMatch
from reflexio.learners.local.case_details import without_identifiers
from reflexio.learners.local.grammar import as_instruction, in_third_person
from reflexio.learners.local.instructions import answer_before, asks_something
from reflexio.learners.local.sentences import CUES, MASK, Sentence, own_sentences, quotes
from reflexio.learners.local.triggers import has_content
from reflexio.models.extraction import ExtractedLearning, Turn
from reflexio.models.learning import Kind, Scope
from reflexio.ports.embedding import Embedder

STATEMENTS = CueFile(Path(__file__).with_suffix(".toml"))
VECTORS = Path(__file__).with_suffix(".npz")
CLASSES = ("fact", "order", "neither")
NEAREST = 3
"""Prototypes of each class that are compared: a single one may share a subject by chance."""
LEAST_LEAD = {"fact": 0.04, "order": 0.07}
"""Cosine by which a clause must be nearer to its class than to `neither`. Measured on idle requests."""
FEWEST_WORDS, MOST_WORDS = 2, 30
MOST_CLAUSES = 8
LEAST_LEAD_OF_TASK = 0.15
"""The same of an imperative that nothing but its matter distinguishes from a task: "Write release notes."."""
RATHER_ORDER = 0.15
"""Cosine by which a clause about its speaker must be nearer to orders than to facts to be one."""


class Statement(NamedTuple):
    """A clause that may state something lasting: its words, and what it can be by its form."""

    text: str
    sentence: Sentence
    form: str


class StatementClassifier:
    """Tells lasting facts and standing orders from everything else. The vectors of the prototypes are read once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._prototypes: dict[str, Any] = {}

    async def matches(self, turns: Sequence[Turn], place: int, known: Sequence[RuleMatch]) -> list[RuleMatch]:
        """What a turn says besides what is `known` from it. What answers a question of the agent is no order."""
        is_asked = asks_something(answer_before(turns, place))
        clauses = [
            clause
            for clause in clauses_of(turns[place], known)
            if not is_asked or clause.form == "fact" or CUES["lasting"].search(clause.text)
        ][:MOST_CLAUSES]
        if not clauses:
            return []
        self._prototypes = self._prototypes or await self._vectors_of_prototypes()
        vectors = await self._embedder.embed([clause.text for clause in clauses])
        near = [_nearest(vectors @ self._prototypes[name].T).tolist() for name in CLASSES]
        judged = (_judged(clause, *cosines) for clause, *cosines in zip(clauses, *near, strict=True))
        return [match for clause in judged if clause and (match := _match(clause))]

    async def _vectors_of_prototypes(self) -> dict[str, Any]:
        if stored := _stored_vectors(self._embedder.name):
            return stored
        return {name: await self._embedder.embed(prototypes(name)) for name in CLASSES}


def prototypes(name: str) -> list[str]:
    return [line.strip() for line in STATEMENTS.data["prototypes"][name].strip().splitlines()]


def digest_of_prototypes() -> str:
    text = "\n".join(line for name in CLASSES for line in prototypes(name))
    return blake2b(text.encode(), digest_size=8).hexdigest()


@cache
def _stored_vectors(embedder: str) -> dict[str, Any]:
    """The vectors that the package brings, if they are those of this embedder and of these prototypes."""
    with np.load(VECTORS) as stored:
        if str(stored["embedder"]) != embedder or str(stored["digest"]) != digest_of_prototypes():
            return {}
        return {name: stored[name].astype(np.float32) for name in CLASSES}


def _nearest(cosines: Any) -> Any:
    """The mean of the greatest cosines of each row."""
    return np.sort(cosines, axis=1)[:, -NEAREST:].mean(axis=1)


def _judged(clause: Statement, fact: float, order: float, neither: float) -> Statement | None:
    """The clause as what it is, by its nearness to each class; None when it is neither."""
    form = "order" if order - fact >= RATHER_ORDER else clause.form
    is_task = form == "order" and not STATEMENTS["outlasts"].search(clause.text)
    lead = (order if form == "order" else fact) - neither
    return clause._replace(form=form) if lead >= (LEAST_LEAD_OF_TASK if is_task else LEAST_LEAD[form]) else None


def clauses_of(turn: Turn, known: Sequence[RuleMatch]) -> Iterator[Statement]:
    """The clauses of a turn that could state something lasting and are in no learning yet."""
    for sentence in own_sentences(turn):
        if MASK in sentence.own or CUES["joking"].search(sentence.own):
            continue
        said = [content_words(match.candidate.content) for match in known if _is_from(match, sentence)]
        for text in _split(sentence):
            form, words = form_of(text), content_words(text)
            if form and not any(words & learned for learned in said):
                yield Statement(text, sentence, form)


def _is_from(match: RuleMatch, sentence: Sentence) -> bool:
    return any(quote.text == sentence.verbatim for quote in match.candidate.evidence)


def _split(sentence: Sentence) -> Iterator[str]:
    parts = STATEMENTS["break"].split(sentence.text.rstrip(" .!"))
    for part in parts:
        text = STATEMENTS["lead_in"].sub("", part.strip(" ,;:-–—"))
        if FEWEST_WORDS <= len(text.split()) <= MOST_WORDS:
            yield text


def form_of(text: str) -> str:
    """`fact` for a clause about its speaker, `order` for one that tells the agent what to do, or nothing."""
    if STATEMENTS["of_the_moment"].search(text) or CUES["momentary"].search(text):
        return ""
    is_question = text.endswith("?")
    if STATEMENTS["order"].match(text):
        is_task = STATEMENTS["at_hand"].search(text) or CUES["task"].match(text)
        return "" if is_task or (is_question and not STATEMENTS["asks_to"].match(text)) else "order"
    if is_question or STATEMENTS["no_fact"].search(text):
        return ""
    is_whole = len(text.split()) > FEWEST_WORDS or "'" in text
    return "fact" if is_whole and STATEMENTS["speaker"].search(text) else ""


def _match(clause: Statement) -> RuleMatch | None:
    evidence = quotes(clause.sentence)
    metadata = {"signal": "statement"}
    if clause.form == "fact":
        content = in_third_person(clause.text)
        fact = ExtractedLearning(
            Kind.PROFILE, "", content, rationale="The user said so.", evidence=evidence, metadata=metadata
        )
        return RuleMatch(0.5, fact) if has_content(content) else None
    content = without_identifiers(as_instruction(re.sub(r"\?$", "", STATEMENTS["asks_to"].sub("", clause.text))))
    order = ExtractedLearning(
        Kind.USER_PLAYBOOK,
        "",
        content,
        rationale="The user said how it should be.",
        evidence=evidence,
        metadata=metadata,
        scope=Scope.ALWAYS,
    )
    return RuleMatch(1.1, order) if has_content(content) else None
