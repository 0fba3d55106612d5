"""The learner that needs no model: it applies its rules to a window and decides what happens to the candidates."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from pathlib import Path

from reflexio import language as language_rules
from reflexio.language.cues import LANGUAGES
from reflexio.language.identify import OTHER
from reflexio.learners.local import summarising
from reflexio.learners.local.candidates import RuleMatch, TypeClassifier, playbook_match, strongest, without_outdated
from reflexio.learners.local.consolidation import decide
from reflexio.learners.local.facts import facts, time_to_live
from reflexio.learners.local.feedback import confirmation, expert_difference, repeated_request
from reflexio.learners.local.instructions import Instruction, instructions, to_forget, trigger_for
from reflexio.learners.local.languages.repeats import repeated_request as repeated_in_language
from reflexio.learners.local.languages.rules import language_of_turn, matches_in, unread_turns
from reflexio.learners.local.sentences import own_sentences, quotes
from reflexio.learners.local.statements import StatementClassifier
from reflexio.learners.local.tool_failures import recoveries
from reflexio.models.config import Config
from reflexio.models.extraction import (
    ClusterToSummarise,
    Consolidation,
    ExtractedLearning,
    Extraction,
    Neighbourhood,
    Spend,
    Summary,
    Turn,
    Window,
)
from reflexio.models.learning import Kind
from reflexio.ports.embedding import Embedder


class LocalLearner:
    """Learns by rules, and by the embedder where meaning decides. Costs nothing; the same input gives the same
    result."""

    name = "local"

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._types = TypeClassifier(embedder)
        self._statements = StatementClassifier(embedder)

    @property
    def fingerprint(self) -> str:
        return _hash_of_rules()

    async def check(self) -> Spend:
        return Spend()

    async def extract(self, window: Window, config: Config, kinds: frozenset[Kind]) -> Extraction:
        sessions = [match for turns in _sessions(window.turns) for match in await self._matches(turns)]
        matches = [match for match in sessions if match.candidate.kind in kinds]
        to_remove = [match.candidate for match in matches if match.candidate.forget]
        to_learn = strongest(
            await without_outdated([match for match in matches if not match.candidate.forget], self._embedder)
        )
        candidates = tuple(await self._types.assign([*to_remove, *to_learn], config))
        return Extraction(candidates, unread=unread_turns(window.turns))

    async def consolidate(self, questions: Sequence[Neighbourhood], config: Config) -> Consolidation:
        return Consolidation(tuple(decide(question) for question in questions))

    async def summarise(self, gathered: ClusterToSummarise, config: Config) -> Summary:
        return Summary(summarising.summarise(gathered))

    async def _matches(self, turns: Sequence[Turn]) -> list[RuleMatch]:
        # The rules take some milliseconds, in which the event loop would serve nobody else.
        by_place = await asyncio.to_thread(_apply_rules, turns)
        matches: list[RuleMatch | None] = []
        for place, turn in enumerate(turns):
            if place in by_place:
                from_turn, has_instruction = by_place[place]
                matches += from_turn
                if language_of_turn(turns, place) not in LANGUAGES:
                    from_patterns = [match for match in from_turn if match]
                    stated = await self._statements.matches(turns, place, from_patterns)
                    matches += stated
                    has_instruction |= any(match.candidate.kind is Kind.USER_PLAYBOOK for match in stated)
                if not has_instruction:
                    matches.append(await self._repetition(turns, place))
            if turn.is_new and turn.expert_content.strip():
                matches.append(await expert_difference(turns, place, self._embedder))
        return [match for match in [*matches, *recoveries(turns)] if match]

    async def _repetition(self, turns: Sequence[Turn], place: int) -> RuleMatch | None:
        language = language_of_turn(turns, place)
        if language in LANGUAGES:
            return await repeated_in_language(language, turns, place, self._embedder)
        return await repeated_request(turns, place, self._embedder)


def _sessions(turns: Sequence[Turn]) -> list[list[Turn]]:
    """The turns by session: what was asked in one is not what is meant in another."""
    sessions: dict[str, list[Turn]] = {}
    for turn in turns:
        sessions.setdefault(turn.session, []).append(turn)
    return list(sessions.values())


@cache
def _hash_of_rules() -> str:
    """Of the source of the rules and their cues, so that it changes with every change of them."""
    digest = blake2b(digest_size=6)
    for folder in (Path(__file__).parent, Path(language_rules.__file__).parent):
        for file in sorted((*folder.rglob("*.py"), *folder.rglob("*.toml"))):
            digest.update(file.read_bytes())
    return f"rules-{digest.hexdigest()}"


def _apply_rules(turns: Sequence[Turn]) -> dict[int, tuple[list[RuleMatch | None], bool]]:
    """By the place of each new turn of the user: what it teaches, and whether it contains an instruction."""
    matches: dict[int, tuple[list[RuleMatch | None], bool]] = {}
    for place, turn in enumerate(turns):
        if turn.is_new and turn.role == "user":
            spoken_in = language_of_turn(turns, place)
            if spoken_in == OTHER:
                continue
            if spoken_in in LANGUAGES:
                taught = matches_in(spoken_in, turns, place)
                matches[place] = [*taught], any(match.candidate.kind is Kind.USER_PLAYBOOK for match in taught)
                continue
            forgotten = list(_requests_to_forget(turn))
            handled = {quote.text for match in forgotten for quote in match.candidate.evidence}
            orders = [order for order in instructions(turns, place) if order.sentence.verbatim not in handled]
            commands = {order.sentence.verbatim for order in orders}
            from_orders = [_from_instruction(turns, place, order) for order in orders]
            from_facts = _from_facts(turn, handled, commands)
            matches[place] = [*forgotten, *from_orders, *from_facts, confirmation(turns, place)], bool(orders)
    return matches


def _requests_to_forget(turn: Turn) -> Iterator[RuleMatch]:
    """For profiles and playbooks alike: the words do not say which of them is meant."""
    for sentence in own_sentences(turn):
        if subject := to_forget(sentence):
            for kind in (Kind.PROFILE, Kind.USER_PLAYBOOK):
                reason = "The user asked to forget it."
                candidate = ExtractedLearning(
                    kind, "", subject, rationale=reason, evidence=quotes(sentence), forget=True
                )
                yield RuleMatch(2.0, candidate)


def _from_instruction(turns: Sequence[Turn], place: int, order: Instruction) -> RuleMatch | None:
    applies = trigger_for(turns, place, order)
    if applies is None:
        return None
    trigger, request = applies
    evidence = quotes(request, order.sentence)
    match = playbook_match(order.weight, order.content, trigger, order.rationale, evidence, signal="instruction")
    return match if not order.is_permission else replace(match, candidate=replace(match.candidate, only_replaces=True))


def _from_facts(turn: Turn, handled: set[str], commands: set[str]) -> Iterator[RuleMatch]:
    """Facts; of a sentence that is a command only what it says besides."""
    for sentence in own_sentences(turn):
        for fact in facts(sentence):
            if sentence.verbatim in handled or (sentence.verbatim in commands and not fact.is_aside):
                continue
            candidate = ExtractedLearning(
                Kind.PROFILE,
                "",
                fact.content,
                rationale="The user said so.",
                evidence=quotes(sentence),
                metadata={"signal": fact.about},
                time_to_live=time_to_live(fact.about, sentence.text),
            )
            yield RuleMatch(fact.weight, candidate)
