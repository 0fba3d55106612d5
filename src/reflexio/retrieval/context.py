"""What goes into a prompt: what always holds for this user, and what is worth most for this message.

The always layer has a share of the room and is ordered by support and age; the relevant layer has the rest, also what
the first one leaves. The same learnings give the same text, whatever their ranking, so that providers' prompt caches
hit. A stored text is escaped and cannot leave its line.

Two learnings are duplicates only if they have the same words in the same order: another number, negation or name
makes another statement, in any language. Paraphrases are merged by consolidation, not here.
"""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from reflexio.language.standing import is_vital
from reflexio.models.learning import Kind, Learning
from reflexio.models.wording import without_hidden
from reflexio.retrieval.calibration import UNCALIBRATED, Calibration
from reflexio.retrieval.fusion import Hit

RELEVANT = 2.2
"""Least relevance, in spreads of the cosines of unrelated sentences. Measured in `tests/bench/context_quality.py`."""
RIVAL = 1.0
"""What the best rival of a learning reaches at least: a user with one learning has no rivals."""
OTHER_KIND = 0.7
"""How far a learning of another kind is a rival: a fact and a rule about it belong together."""
MOST_LEAD, MOST_BEHIND = 3.0, 1.5
"""A learning's distance to its best rival counts up to these. Among sentences on one subject all are near the message;
the one that is meant stands out."""
CASE = 0.9
"""Spreads that a turn must be nearer than a learning to count as much: any two messages of users are alike in tone."""
WORDS, MOST_WORDS = 0.5, 6.0
"""How many spreads a nat of word evidence counts, and the most nats that count."""
WORDS_ENOUGH, WORDS_ENOUGH_ALONE = 2.0, 0.5
"""Nats of word evidence that suffice for a short query, and where there is no vector."""
SHORT_QUERY, SHORT_QUERY_SPREADS = 3, 3.0
"""A query of so few tokens ("ok", "hello") resembles any short sentence: a match needs so many spreads."""
SAME_TOPIC = 0.6
"""Two learnings that share this part of their words may be about the same thing."""
SIMILAR_WORTH = 0.8
"""With this share of another's worth a learning is worth about the same."""
ALWAYS_HEADINGS = {
    Kind.PROFILE: "Always keep in mind about this user",
    Kind.USER_PLAYBOOK: "Always do for this user",
    Kind.AGENT_PLAYBOOK: "Always do for everybody",
}
RELEVANT_HEADINGS = {
    Kind.PROFILE: "About this user",
    Kind.USER_PLAYBOOK: "What this user taught",
    Kind.AGENT_PLAYBOOK: "What works for everybody",
}
OPENING, CLOSING = "<learned>", "</learned>"


@dataclass(frozen=True)
class RankedLearning:
    """A learning from a search, and the evidence for it among the rows of its own kind.

    `case` is the cosine of the nearest turn that it was learned from.
    """

    learning: Learning
    hit: Hit
    case: float | None = None


@dataclass(frozen=True)
class Selection:
    """The learnings of each layer."""

    always: tuple[Learning, ...] = ()
    relevant: tuple[Learning, ...] = ()

    @property
    def learnings(self) -> tuple[Learning, ...]:
        return *self.always, *self.relevant

    @property
    def layers(self) -> tuple[tuple[dict[Kind, str], tuple[Learning, ...]], ...]:
        return (ALWAYS_HEADINGS, self.always), (RELEVANT_HEADINGS, self.relevant)


@dataclass(frozen=True)
class Context(Selection):
    """The learnings of each layer as text, and the tokens that it takes."""

    text: str = ""
    tokens: int = 0


_COSTLY = re.compile(r"\b[A-Za-z]*+[0-9][A-Za-z0-9]*|[A-Z]{2,}|[!-/:-@\[-`{-~\n]|[^\x00-\x7f]")
_COMMON = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
"""Han, kana and hangul: characters that most tokenizers have in their vocabulary."""


def tokens(text: str) -> int:
    """An upper estimate of the tokens, for any tokenizer and any script.

    Three letters of running text are a token. Digits, codes, capitals and punctuation are one each. Other characters
    count one less than their bytes, because tokenizers encode unknown characters by bytes.
    """
    costly = "".join(_COSTLY.findall(text))
    beyond = len(costly.encode(errors="replace")) - len(costly)
    common = len(_COMMON.findall(costly)) if beyond else 0
    plain = len(text) - len(costly)
    ascii_only = sum(map(str.isascii, costly)) if beyond else len(costly)
    return math.ceil(plain / 3 - common / 2) + beyond + ascii_only


_FRAME_ROOM = tokens(f"{OPENING}\n{CLOSING}")
_HEADING_ROOM = {
    heading: tokens(f"{heading}:\n")
    for headings in (ALWAYS_HEADINGS, RELEVANT_HEADINGS)
    for heading in headings.values()
}


def line(learning: Learning) -> str:
    content = _escape(learning.content)
    return f"- {occasion(_escape(learning.trigger))}: {content}" if learning.trigger else f"- {content}"


_INTRODUCED = re.compile(r"(when|whenever|if|before|after|while|for|during|as soon as)\b", re.IGNORECASE)
_ARTICLE = re.compile(
    "^(?:The|An?|No|Any|Some|(?:Any|Some)(?:one|body|thing)|It|They|You|This|That|There|Users?|Customers?)(?=[ '’])"
)


def occasion(trigger: str) -> str:
    """The trigger as the beginning of a sentence."""
    if _INTRODUCED.match(trigger):
        return trigger[0].upper() + trigger[1:]
    return "When " + _ARTICLE.sub(lambda word: word[0].lower(), trigger)


def _escape(text: str) -> str:
    # What is stored is clean; rows of earlier versions may not be.
    one_line = " ".join(without_hidden(text).split())
    return one_line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def compose(
    ranked: Sequence[RankedLearning],
    max_tokens: int,
    *,
    query: str,
    calibration: Calibration = UNCALIBRATED,
    always: Sequence[Learning] = (),
    always_tokens: int = 0,
) -> Context:
    """Both layers, without duplicates. `calibration` tells which cosines are noise.

    `always` are learnings that always hold, in any order; the layer takes at most `always_tokens`.
    """
    room = LineRoom()
    standing = _choose_always(_without_duplicates(always), min(always_tokens, max_tokens), room)
    shown = {learning.id for learning in standing}
    repeated = {normalised(learning) for learning in standing}
    others = [entry for entry in ranked if entry.learning.id not in shown]
    relevant_worth = worth(others, calibration, query=query)
    strong = [entry.learning for entry in others if entry.learning.id in relevant_worth]
    new = [learning for learning in _without_duplicates(strong) if normalised(learning) not in repeated]
    relevant = _choose_relevant(new, relevant_worth, Selection(tuple(standing)), max_tokens, room)
    chosen = Selection(tuple(_in_order(standing)), tuple(_in_order(relevant)))
    text = render(chosen)
    return Context(chosen.always, chosen.relevant, text, tokens(text))


def support(learning: Learning) -> int:
    """Users of an agent playbook; turns of a user's own learning."""
    return int(learning.details.get("support") or len(learning.details.get("source_interaction_ids") or ()))


class LineRoom:
    """The tokens of each learning's line, counted once."""

    def __init__(self) -> None:
        self._tokens: dict[int, int] = {}

    def of_line(self, learning: Learning) -> int:
        if learning.id not in self._tokens:
            self._tokens[learning.id] = tokens(line(learning) + "\n")
        return self._tokens[learning.id]

    def of(self, selection: Selection) -> int:
        """The tokens of a whole context, with its frame and headings."""
        lines = sum(map(self.of_line, selection.learnings))
        kinds = ({headings[learning.kind] for learning in layer} for headings, layer in selection.layers)
        return _FRAME_ROOM + lines + sum(_HEADING_ROOM[heading] for of_layer in kinds for heading in of_layer)


def _choose_always(learnings: Sequence[Learning], max_tokens: int, room: LineRoom) -> list[Learning]:
    """Best supported and newest first, as long as there is room; where there is none for all, instructions and what
    limits the user before what they are and have."""
    if room.of(Selection(tuple(learnings))) <= max_tokens:
        return list(learnings)

    def rank(learning: Learning) -> tuple[bool, int, tuple[int, int]]:
        is_first = learning.kind is not Kind.PROFILE or is_vital(learning.content)
        return is_first, support(learning), _age(learning)

    chosen: list[Learning] = []
    for new in sorted(learnings, key=rank, reverse=True):
        if room.of(Selection((*chosen, new))) <= max_tokens:
            chosen.append(new)
    return chosen


def _choose_relevant(
    learnings: Sequence[Learning], worth: Mapping[int, float], selection: Selection, max_tokens: int, room: LineRoom
) -> list[Learning]:
    """The most valuable for their tokens, beside those of the always layer in `selection`."""

    def fits(relevant: Sequence[Learning]) -> bool:
        return room.of(Selection(selection.always, tuple(relevant))) <= max_tokens

    def value(learning: Learning) -> tuple[float, int]:
        return -worth[learning.id] / room.of_line(learning) ** 0.5, learning.id

    chosen: list[Learning] = []
    for new in sorted(learnings, key=value):
        if fits([*chosen, new]):
            chosen.append(new)
        elif old := next((old for old in chosen if _may_be_outdated(old, new, worth)), None):
            without_old = [learning for learning in chosen if learning is not old]
            chosen = [*without_old, new] if fits([*without_old, new]) else chosen
    return chosen


@dataclass(frozen=True, slots=True)
class Relevance:
    """How relevant a learning is to the message, and the least that counts. `is_short`: the message is too short for
    a match that is not near."""

    value: float
    least: float
    is_short: bool = False

    @property
    def is_enough(self) -> bool:
        return self.value >= self.least and not self.is_short


def relevances(ranked: Sequence[RankedLearning], calibration: Calibration, *, query: str) -> dict[int, Relevance]:
    """The relevance of each learning: nearness, the lead before the best rival, and word evidence."""
    is_short = tokens(query) <= SHORT_QUERY
    spreads = {entry.learning.id: _spreads(entry, calibration) for entry in ranked}
    best = {
        kind: sorted((spreads[entry.learning.id] for entry in ranked if entry.learning.kind is kind), reverse=True)[:2]
        for kind in Kind
    }
    found = {}
    for entry in ranked:
        near, words = spreads[entry.learning.id], entry.hit.words_evidence
        is_too_short = is_short and near < SHORT_QUERY_SPREADS and words < WORDS_ENOUGH
        same = best[entry.learning.kind]
        rivals = same[1:] if near == same[0] else same[:1]
        rivals += [
            OTHER_KIND * of_kind[0] for kind, of_kind in best.items() if of_kind and kind is not entry.learning.kind
        ]
        lead = max(-MOST_BEHIND, min(near - max([RIVAL, *rivals]), MOST_LEAD))
        # An embedder that is not trusted leaves the decision to the words.
        trust = 0.0 if entry.hit.vector_score is None else calibration.trust
        relevance = trust * (near + lead) + WORDS * min(words, MOST_WORDS)
        least = trust * RELEVANT + (1 - trust) * WORDS * WORDS_ENOUGH_ALONE
        found[entry.learning.id] = Relevance(relevance, least, is_too_short)
    return found


def worth(ranked: Sequence[RankedLearning], calibration: Calibration, *, query: str) -> dict[int, float]:
    """The relevant learnings with their relevance."""
    found = relevances(ranked, calibration, query=query)
    return {learning_id: relevance.value for learning_id, relevance in found.items() if relevance.is_enough}


def _spreads(entry: RankedLearning, calibration: Calibration) -> float:
    """How near the message is to the learning, or to what somebody said in such a case."""
    cosines = [] if entry.hit.vector_score is None else [entry.hit.vector_score]
    if entry.case is not None:
        cosines.append(entry.case - CASE * calibration.spread)
    return (max(cosines) - calibration.mean) / calibration.spread if cosines else 0.0


def render(selection: Selection) -> str:
    if not selection.learnings:
        return ""
    parts = [OPENING]
    for headings, layer in selection.layers:
        for kind, heading in headings.items():
            if of_kind := [learning for learning in _in_order(layer) if learning.kind is kind]:
                parts += [f"{heading}:", *map(line, of_kind)]
    return "\n".join([*parts, CLOSING])


def _in_order(learnings: Sequence[Learning]) -> list[Learning]:
    places = list(RELEVANT_HEADINGS)
    return sorted(learnings, key=lambda learning: (places.index(learning.kind), learning.id))


def _without_duplicates(learnings: Sequence[Learning]) -> list[Learning]:
    """Of duplicates, the newest."""
    return list({normalised(learning): learning for learning in sorted(learnings, key=_age)}.values())


def _age(learning: Learning) -> tuple[int, int]:
    return max(learning.created_at, learning.modified_at), learning.id


_IGNORED = re.compile(r"[\s.,;:!?…'\"“”„‘’«»()\[\]、。，！？；：「」『』¿¡]+|\b(?:[Tt]he|an?|[Pp]lease)\b|[-–—]+(?!\d)")
_TERM = re.compile(r"[^\W_]+|\S")


def normalised(learning: Learning) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Trigger and content without case, punctuation and articles."""
    return _terms(learning.trigger), _terms(learning.content)


@lru_cache(maxsize=1024)
def _terms(text: str) -> tuple[str, ...]:
    return tuple(_TERM.findall(_IGNORED.sub(" ", unicodedata.normalize("NFKC", text)).casefold()))


def _may_be_outdated(old: Learning, new: Learning, worth: Mapping[int, float]) -> bool:
    """Whether the new one may correct the old one: where there is room for one, the newer one goes in."""
    if _age(new) < _age(old) or worth[new.id] < SIMILAR_WORTH * worth[old.id]:
        return False
    old_terms, new_terms = set(_terms(old.text)), set(_terms(new.text))
    return len(old_terms & new_terms) >= SAME_TOPIC * max(len(old_terms), len(new_terms))
