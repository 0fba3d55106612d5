"""The learner that needs no model: what its rules find in a window, and what becomes of it."""

import asyncio
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from reflexio.learners.local import generalising
from reflexio.learners.local.choosing import chosen
from reflexio.learners.local.confirmations import confirmation
from reflexio.learners.local.experts import expert_difference
from reflexio.learners.local.facts import facts
from reflexio.learners.local.filing import Cabinet
from reflexio.learners.local.finding import Finding, quotes
from reflexio.learners.local.forgetting import to_forget
from reflexio.learners.local.lifetimes import time_to_live
from reflexio.learners.local.merging import decide
from reflexio.learners.local.orders import Order, orders
from reflexio.learners.local.repeats import repeated
from reflexio.learners.local.sentences import spoken
from reflexio.learners.local.tools import recoveries
from reflexio.learners.local.triggers import request_before, trigger_of
from reflexio.models.config import Config
from reflexio.models.learned import (
    Candidate,
    Consolidation,
    Extraction,
    Gathered,
    Generalisation,
    Neighbourhood,
    Turn,
    Window,
)
from reflexio.models.learning import Kind
from reflexio.ports.embedding import Embedder


class LocalLearner:
    """Learns by rules, and by the embedder where meaning decides. Costs nothing; says the same each time."""

    name = "local"

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._cabinet = Cabinet(embedder)

    @property
    def fingerprint(self) -> str:
        return _rules()

    async def extract(self, window: Window, config: Config, kinds: frozenset[Kind]) -> Extraction:
        found = [each for each in await self._findings(window.turns) if each.candidate.kind in kinds]
        forgotten = [each.candidate for each in found if each.candidate.forget]
        learned = [each.candidate for each in chosen([each for each in found if not each.candidate.forget])]
        return Extraction(tuple(await self._cabinet.file([*forgotten, *learned], config)))

    async def consolidate(self, questions: Sequence[Neighbourhood], config: Config) -> Consolidation:
        return Consolidation(tuple(decide(question) for question in questions))

    async def generalise(self, gathered: Gathered, config: Config) -> Generalisation:
        return Generalisation(generalising.generalise(gathered))

    async def _findings(self, turns: Sequence[Turn]) -> list[Finding]:
        # The rules take some milliseconds, in which nobody else would be served.
        ruled = await asyncio.to_thread(_by_rules, turns)
        found: list[Finding] = []
        for place, turn in enumerate(turns):
            if place in ruled:
                said, is_order = ruled[place]
                found += said if is_order else [*said, *_one(await repeated(turns, place, self._embedder))]
            if turn.is_new and turn.expert_content.strip():
                found += _one(await expert_difference(turns, place, self._embedder))
        return [*found, *recoveries(turns)]


def _by_rules(turns: Sequence[Turn]) -> dict[int, tuple[list[Finding], bool]]:
    """What each new turn of the user says, by its place, and whether there is an order in it."""
    places = [place for place, turn in enumerate(turns) if turn.is_new and turn.role == "user"]
    return {place: _said(turns, place) for place in places}


def _said(turns: Sequence[Turn], place: int) -> tuple[list[Finding], bool]:
    forgotten = list(_forgotten(turns[place]))
    settled = {quote.text for each in forgotten for quote in each.candidate.evidence}
    ordered = [order for order in orders(turns, place) if order.sentence.text not in settled]
    commands = {order.sentence.text for order in ordered}
    found = [*forgotten, *(_order(turns, place, each) for each in ordered)]
    found += _told(turns[place], settled, commands)
    found += _one(confirmation(turns, place))
    return found, bool(ordered)


@lru_cache(maxsize=1)
def _rules() -> str:
    """Of the rules as they are written: no change of them can go unnoticed."""
    digest = blake2b(digest_size=6)
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return f"rules-{digest.hexdigest()}"


def _one(found: Finding | None) -> list[Finding]:
    return [found] if found else []


def _forgotten(turn: Turn) -> Iterator[Finding]:
    """For profiles and playbooks alike: the words do not say which."""
    for sentence in spoken(turn):
        if what := to_forget(sentence):
            for kind in (Kind.PROFILE, Kind.USER_PLAYBOOK):
                why = "The user asked to forget it."
                yield Finding(2.0, Candidate(kind, "", what, rationale=why, evidence=quotes(sentence), forget=True))


def _order(turns: Sequence[Turn], place: int, order: Order) -> Finding:
    request = None if order.trigger else request_before(turns, place)
    found = Candidate(
        Kind.USER_PLAYBOOK,
        "",
        order.content,
        order.trigger or trigger_of(request),
        order.rationale,
        quotes(request, order.sentence),
        {"signal": "instruction"},
    )
    return Finding(order.weight, found)


def _told(turn: Turn, settled: set[str], commands: set[str]) -> Iterator[Finding]:
    """Facts, of a command only what it says besides."""
    for sentence in spoken(turn):
        for fact in facts(sentence):
            if sentence.text in settled or (sentence.text in commands and not fact.is_aside):
                continue
            found = Candidate(
                Kind.PROFILE,
                "",
                fact.content,
                rationale="The user said so.",
                evidence=quotes(sentence),
                metadata={"signal": fact.about},
                time_to_live=time_to_live(fact.about, sentence.text),
            )
            yield Finding(fact.weight, found)
