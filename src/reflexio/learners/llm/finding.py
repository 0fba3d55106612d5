"""From a model's findings to candidates: each is taken, mended or counted as unusable, one by one."""

import re
from collections.abc import Iterable, Mapping

from reflexio.learners.llm.fence import compact
from reflexio.learners.llm.shapes import Findings, FoundForget, FoundPlaybook, FoundProfile, FoundQuote
from reflexio.models.learned import Candidate, Quote, Turn
from reflexio.models.learning import Kind

Names = Mapping[Kind, tuple[str, ...]]


def candidates(found: Findings, turns: Mapping[int, Turn], names: Names) -> tuple[tuple[Candidate, ...], int]:
    """The candidates, and how many entries could not be used: without content, or of a type that is not configured."""
    read = [
        *(_profile(each, turns, names) for each in found.profiles),
        *(_playbook(each, turns, names) for each in found.playbooks),
        *(_forget(each, turns, names) for each in found.forget),
    ]
    kept = tuple(candidate for candidate in read if candidate is not None)
    return kept, len(read) - len(kept)


def _profile(found: FoundProfile, turns: Mapping[int, Turn], names: Names) -> Candidate | None:
    name = _named(found.type, names[Kind.PROFILE])
    if not (name and found.content):
        return None
    evidence = _quotes(found.evidence, turns)
    return Candidate(Kind.PROFILE, name, found.content, evidence=evidence, time_to_live=found.time_to_live)


def _playbook(found: FoundPlaybook, turns: Mapping[int, Turn], names: Names) -> Candidate | None:
    name = _named(found.type, names[Kind.USER_PLAYBOOK])
    if not (name and found.content):
        return None
    return Candidate(
        Kind.USER_PLAYBOOK,
        name,
        found.content,
        trigger=found.trigger,
        rationale=found.rationale,
        evidence=_quotes(found.evidence, turns),
        metadata=found.metadata,
    )


def _forget(found: FoundForget, turns: Mapping[int, Turn], names: Names) -> Candidate | None:
    kind = Kind.USER_PLAYBOOK if found.kind == "playbook" else Kind.PROFILE
    if not (found.content and names[kind]):
        return None
    return Candidate(kind, names[kind][0], found.content, evidence=_quotes(found.evidence, turns), forget=True)


def _named(name: str, known: tuple[str, ...]) -> str:
    """The configured name that is meant. Where there is one type only, everything belongs to it."""
    if name in known:
        return name
    alike = [each for each in known if _plain(each) == _plain(name)]
    if len(alike) == 1:
        return alike[0]
    return known[0] if len(known) == 1 else ""


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).lower()


def _quotes(found: Iterable[FoundQuote], turns: Mapping[int, Turn]) -> tuple[Quote, ...]:
    """Quotes with the id of their turn. One that stands in another turn than the model says is moved there."""
    placed = ((_source(quote, turns), quote.text) for quote in found if quote.text)
    return tuple(Quote(turn.id, text) for turn, text in placed if turn is not None)


def _source(quote: FoundQuote, turns: Mapping[int, Turn]) -> Turn | None:
    named = turns.get(quote.turn)
    if named is not None and _holds(named, quote.text):
        return named
    return next((turn for turn in turns.values() if _holds(turn, quote.text)), named)


def _holds(turn: Turn, text: str) -> bool:
    tools = (f"{call.name} {call.status} {compact(call.data)}" for call in turn.tools)
    return _spaced(text) in _spaced("\n".join([turn.content, turn.expert_content, turn.action, *tools]))


def _spaced(text: str) -> str:
    return " ".join(text.split())
