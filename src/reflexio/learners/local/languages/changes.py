"""What happens to a candidate in another language next to what is stored: only words decide here.

The frames make any two statements alike, and most embedders read English best, so that cosines say little.
"""

import re
from dataclasses import dataclass

from reflexio.language.choices import other_choice
from reflexio.language.cues import LanguageCues, cues_of, folded
from reflexio.learners.local.languages.facts import fact_cue
from reflexio.models.extraction import Decision, ExtractedLearning, Neighbour
from reflexio.models.learning import Kind

SAME_MATTER = 0.6  # of the words of two statements, by Dice
_INNER = re.compile(r"[„“«](.{1,800})[”“»]", re.S)
_WORD = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+")
_FIGURE = re.compile(r"\d[\d.,:]*\d|\d")

METADATA = "language"
"""The metadata of a learning that names the language in which it was said."""


@dataclass(frozen=True)
class _Statement:
    """What is said, without frame: its words, whether they say no, and what it chooses on which matter."""

    words: frozenset[str]
    figures: frozenset[str]
    is_negative: bool
    choices: dict[str, str]


def decide_by_words(candidate: ExtractedLearning, near: list[Neighbour]) -> Decision:
    """The newer of two statements that cannot both hold replaces the older; what is known is dropped."""
    cues = cues_of(candidate.metadata[METADATA])
    stated = _read(candidate.content, candidate.kind, cues)
    read = [(neighbour, _read(neighbour.learning.content, candidate.kind, cues)) for neighbour in near]
    reasons = {
        neighbour.learning.id: why
        for neighbour, known in read
        if (why := _opposed(stated, known) or _chosen_otherwise(candidate, neighbour))
    }
    if reasons:
        first = next(iter(reasons.values()))
        return Decision("replace", tuple(reasons), reason=f"It contradicts what was stored: {first}.")
    for neighbour, known in read:
        if stated.words <= known.words and stated.figures <= known.figures:
            return Decision("drop", (neighbour.learning.id,), reason="It is known already.")
    return Decision("add", reason="Nothing stored says this.")


def _chosen_otherwise(candidate: ExtractedLearning, neighbour: Neighbour) -> str:
    """Why a standing order in any language takes the place of another one."""
    stored = neighbour.learning
    if candidate.kind is Kind.PROFILE or candidate.trigger or stored.trigger:
        return ""
    matter = other_choice(candidate.content, stored.content)
    return f"another {matter} was chosen" if matter else ""


def stated_words(content: str, language: str) -> frozenset[str]:
    """What a learning says apart from its frame, in words."""
    return words_of(_unframed(content), cues_of(language))


def _unframed(content: str) -> str:
    inner = _INNER.search(content)
    return " ".join(folded(inner[1] if inner else content).rstrip(" .!。！").split())


def _read(content: str, kind: Kind, cues: LanguageCues) -> _Statement:
    plain = _unframed(content)
    if lead := cues["lead_in"].match(plain):
        plain = plain[lead.end() :] or plain
    choices = {
        topic.name: match.groupdict().get("value") or value
        for topic in cues.topics
        for value, pattern in topic.choices
        if (match := pattern.search(plain))
    }
    if kind is Kind.PROFILE and (hit := fact_cue(plain, cues)) and hit[0].is_single and hit[1]:
        choices[hit[0].about] = hit[1]
    is_negative = bool(cues["negation"].search(plain))
    return _Statement(words_of(plain, cues), frozenset(_FIGURE.findall(plain)), is_negative, choices)


def words_of(plain: str, cues: LanguageCues) -> frozenset[str]:
    """The words of a folded text that carry meaning, and those alone: without a no."""
    silent = cues.lists["silent"]
    rest = cues["negation"].sub(" ", plain)
    return frozenset(_stem(word) for word in _WORD.findall(rest) if word not in silent)


def _stem(word: str) -> str:
    """Without the ending that gender and number change: "vegetariana", "vegetarianos"."""
    return word if len(word) < 5 else re.sub(r"(?:[aeo]s?|innen|in|es?|s|en)$", "", word)


def _opposed(new: _Statement, old: _Statement) -> str:
    shared = new.choices.keys() & old.choices.keys()
    if new.is_negative == old.is_negative:
        for name in sorted(shared):
            if new.choices[name] != old.choices[name]:
                return f"{old.choices[name]!r} became {new.choices[name]!r}"
        return ""
    common = len(new.words & old.words)
    alike = 2 * common / (len(new.words) + len(old.words)) if common else 0.0
    is_same_choice = any(new.choices[name] == old.choices[name] for name in shared)
    if alike >= SAME_MATTER or is_same_choice or (common and old.words <= new.words):
        return "one says yes and the other no"
    return ""
