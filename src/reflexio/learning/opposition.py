"""Whether two pieces of advice about one trigger contradict each other, by rules over their words.

A text is read as claims: what to do or not to do, in the words that carry meaning, cut into the matter itself and
its details ("offer a refund | for late deliveries"), and what is to come before what. Two claims are opposed when
they speak of the same matter and one of them says no, or one has the opposite word; not when both. The words are
English, with the negations of some other languages.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from reflexio.learning.opposite_words import EMPTY, LIGHT, NEGATIONS, OPPOSITE, PREPOSITIONS, stem

SAME_MATTER = 0.7  # of the words that two claims have, by Dice

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_SENTENCE = re.compile(r"[.!?;\n]+(?=\s|$)|\s[-–—]\s|\(?\b\d{1,2}[.)]\s")
_CLAUSE = re.compile(
    r",?\s+\b(?:but|however|whereas|and then|then)\b,?\s+"
    r"|(?:,|\s+and)\s+(?=(?:never|do not|don't|avoid|always|instead)\b)"
    r"|:\s+",
    re.I,
)
_CONDITION = re.compile(
    r"^\s*(?:if|when|whenever|once|as soon as|in case|while|wenn|falls|si|cuando|quand)\b(?P<before>[^,]*),"
    r"|\b(?:if|when|whenever|in case|while)\b(?P<after>.*)$",
    re.I | re.S,
)
_HARMLESS = re.compile(
    r"\b(?:do(?:es)? not|don't|never|not|without)\s+(?:forget(?:ting)?|fail(?:ing)?|hesitat(?:e|ing)|neglect(?:ing)?)\b"
    r"|\bno (?:matter|later than|more than|less than|fewer than|doubt|problem|worries)\b|\bnot only\b|\bif not\b",
    re.I,
)
_REPORT = re.compile(r"\b(?:(?:did|was|were) not|didn't|wasn't|weren't)\b", re.I)  # what happened is no advice
_LEAVING = re.compile(r"\b(?:leav(?:e|ing) (?:out|off|away)|hold(?:ing)? off|steer clear of|get rid of)\b", re.I)
_LINK = re.compile(
    r"\s(?P<instead>instead of|rather than|in place of|in preference to|without)\s|,\s*(?:and )?(?P<rather>not)\s"
    r"|\s(?P<before>before|until|unless)\s|\s(?P<after>after|once)\s",
    re.I,
)
_PREFERRED = re.compile(r"\b(?:prefer\w*|favou?r\w*|choose|pick)\s+(?!to\b|not\b)(.*?)\s(?:over|to)\s", re.I)
_TURNED = re.compile(r"^\s*(?:instead of|rather than)\b([^,]*),(.*)$", re.I | re.S)
_AND = re.compile(r"\s+and\s+", re.I)
_SILENT = EMPTY | NEGATIONS | PREPOSITIONS

Words = frozenset[str]
_NONE: Words = frozenset()


@dataclass(frozen=True, slots=True)
class _Claim:
    """What is asked for, or refused. `condition` and `details` tell apart what has the same matter."""

    refused: bool
    matter: Words
    details: Words
    condition: Words

    @property
    def words(self) -> Words:
        return self.matter | self.details


@dataclass(frozen=True, slots=True)
class _Reading:
    """Claims; what comes first and what then; and all words, to see quickly that two texts have nothing to dispute."""

    claims: tuple[_Claim, ...]
    orders: tuple[tuple[Words, Words], ...]
    asked: Words
    refused: Words
    turned: Words

    @classmethod
    def of(cls, claims: Iterable[_Claim], orders: Iterable[tuple[Words, Words]]) -> "_Reading":
        told = tuple(dict.fromkeys(claim for claim in claims if claim.matter))
        asked = _NONE.union(*(claim.words for claim in told if not claim.refused))
        refused = _NONE.union(*(claim.words for claim in told if claim.refused))
        turned = _NONE.union(*(OPPOSITE[word] for word in asked | refused if word in OPPOSITE))
        return cls(told, tuple((first, then) for first, then in orders if first and then), asked, refused, turned)


def opposed(one: str, other: str) -> bool:
    """Whether following one piece of advice means not following the other.

    >>> opposed("Always ask for the order number.", "Do not ask for the order number.")
    True
    >>> opposed("Avoid jargon.", "Do not use jargon.")
    False
    """
    this, that = _read(one), _read(other)
    return _is_disputed(this, that) or any(
        min(_alike(first, later), _alike(then, sooner)) >= SAME_MATTER
        for first, then in this.orders
        for sooner, later in that.orders
    )


def _is_disputed(this: _Reading, that: _Reading) -> bool:
    if (
        this.asked.isdisjoint(that.refused)
        and this.refused.isdisjoint(that.asked)
        and this.turned.isdisjoint(that.asked)
        and this.turned.isdisjoint(that.refused)
    ):
        return False
    return any(_contradict(claim, against) for claim in this.claims for against in that.claims)


def _contradict(one: _Claim, other: _Claim) -> bool:
    turned = frozenset(word for word in one.words - other.words if _is_turned(word, one.words, other.words))
    if (one.refused != other.refused) == (len(turned) % 2 == 1):
        return False
    apart = turned.union(*(OPPOSITE[word] for word in turned))
    return not _is_another_case(one.condition, other.condition) and _is_same_matter(one, other, apart)


def _is_turned(word: str, here: Words, there: Words) -> bool:
    return any(opposite in there and opposite not in here for opposite in OPPOSITE.get(word, _NONE))


def _is_another_case(one: Words, other: Words) -> bool:
    """ "If the order is late", "if the order is on time". Without a common word they may be one in two wordings."""
    return bool(one & other and one - other and other - one)


def _is_same_matter(one: _Claim, other: _Claim, apart: Words) -> bool:
    if _alike(one.words - apart, other.words - apart) >= SAME_MATTER:
        return True
    if one.details and other.details and not one.details & other.details:
        return False
    return _alike(one.matter - apart, other.matter - apart) >= SAME_MATTER


def _alike(one: Words, other: Words) -> float:
    return 2 * len(one & other) / (len(one) + len(other)) if one or other else 1.0


@lru_cache(maxsize=1 << 15)
def _read(text: str) -> _Reading:
    plain = _LEAVING.sub(" avoid ", _HARMLESS.sub(" ", text.replace("’", "'")))
    claims: list[_Claim] = []
    orders: list[tuple[Words, Words]] = []
    for sentence in _SENTENCE.split(plain):
        condition = _CONDITION.search(sentence)
        given = _meaning(condition["before"] or condition["after"] or "") if condition else frozenset()
        told = sentence[: condition.start()] + " " + sentence[condition.end() :] if condition else sentence
        for clause in [] if _REPORT.search(told) else _CLAUSE.split(told):
            said, ordered = _clause(_TURNED.sub(r"\2 instead of \1", _PREFERRED.sub(r"\1 instead of ", clause)), given)
            claims += said
            orders += ordered
    return _Reading.of(claims, orders)


def _clause(clause: str, condition: Words) -> tuple[list[_Claim], list[tuple[Words, Words]]]:
    """What it asks for and refuses, and what it puts before what."""
    link = _LINK.search(clause)
    head, tail = (clause[: link.start()], clause[link.end() :]) if link else (clause, "")
    how = link.lastgroup if link else None
    order = _meaning(head), _meaning(tail)
    if _is_negative(head):
        if how == "before" or (link and link.group().strip().lower() == "without"):
            return [_claim(tail, condition)], [order[::-1]]  # "do not refund before you have checked": check first
        told = [_claim(clause if how == "after" else head, condition)]
        return told + ([_claim(tail, condition)] if how in ("instead", "rather") else []), []
    parts = _AND.split(head)
    asked = [_claim(each, condition) for each in ([head, *parts] if len(parts) > 1 else parts)]
    match how:
        case "instead" | "rather":
            return [*asked, _claim(tail, condition, refused=True)], []
        case "before":
            return asked, [order]
        case "after":
            return asked, [order[::-1]]
    return asked, []


def _claim(told: str, condition: Words, *, refused: bool = False) -> _Claim:
    """A no counts where it stands in the matter; in the details it is about those: "refund what was not sent"."""
    words = _words(told)
    end = _end_of_matter(words)
    matter = words[:end]
    return _Claim(refused ^ _is_refusing(matter), _carrying(matter), _carrying(words[end:]), condition)


def _end_of_matter(words: list[str]) -> int:
    """The first preposition that does not belong to the verb, as that of "ask for" does."""
    for at, word in enumerate(words):
        if word in PREPOSITIONS and len(set(words[:at]) - _SILENT) > 1:
            return at
    return len(words)


def _is_negative(told: str) -> bool:
    return _is_refusing(_words(told))


def _is_refusing(words: list[str]) -> bool:
    return sum(word in NEGATIONS for word in words) % 2 == 1


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _meaning(text: str) -> Words:
    return _carrying(_words(text))


def _carrying(words: list[str]) -> Words:
    return frozenset(stem(word) for word in words if word not in _SILENT and word not in LIGHT)
