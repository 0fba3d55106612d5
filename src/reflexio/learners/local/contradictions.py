"""Whether two learnings cannot both hold: yes against no, or another value for what has only one."""

import re
from difflib import SequenceMatcher

from reflexio.learners.local.phrases import phrase
from reflexio.learners.local.words import figures, is_negative, meaning, shared

SAME_MATTER = 0.6
RELATED = 0.5
LONGEST_VALUE = 3  # words

_VALUE = r"(?P<value>[^,.;!?]{2,60})"
SINGLE_VALUED = (
    phrase(rf"\b(lives?|living|based|located|resides?|moved|relocated) (back )?(in|to|near) {_VALUE}"),
    phrase(rf"\b(works?|working) as {_VALUE}"),
    phrase(rf"\b(works?|working) (for|at) {_VALUE}"),
    phrase(r"\bis (?P<value>\d{1,3}) years? old"),
    phrase(rf"\b(?P<subject>(all-time |absolute )?(favou?rite|preferred|go-to) [^,.;!?]{{2,40}}?) (is|are) {_VALUE}"),
    phrase(
        r"\bthe user's (?P<subject>((full|first|last|middle) )?name|nickname|birthday|hometown|native language|"
        r"mother tongue|job|profession|nationality|blood type|shoe size|time zone|budget|deadline|goal) is "
        rf"{_VALUE}"
    ),
)
"""What a person has one of. The newest value is the true one."""

_CHOICE = phrase(r"\b(?P<verb>prefers?|favou?rs?) (?P<value>[^,.;!?]{2,80})")
_OVER = phrase(r" (over|to|rather than|instead of|more than) ")
_ADDING = phrase(
    r"\b(include|add|mention|check|ask|offer|show|list|cite|explain|name|remember|verify|confirm|be sure)\b"
)
"""Orders that go together, whatever they name: a summary and a source can both be included."""


def contradiction(newer: str, older: str, similarity: float) -> str:
    """Why the newer takes the older's place; empty when both can hold."""
    for slot in SINGLE_VALUED:
        if reason := _another_value(slot, newer, older):
            return reason
    if similarity < RELATED:
        return ""
    if _is_same_matter(newer, older) and is_negative(newer) != is_negative(older):
        return "one says yes and the other no"
    if _is_same_matter(newer, older) and _other_figures(newer, older):
        return "the figure changed"
    return _other_choice(newer, older)


def changed_order(newer: str, older: str, similarity: float) -> str:
    """Two orders alike in all but a few words: "prices in euros", "prices in dollars". Empty when both can be kept."""
    if similarity < SAME_MATTER or is_negative(newer) or is_negative(older) or _ADDING.search(newer):
        return ""
    now, then = newer.lower().rstrip(".!").split(), older.lower().rstrip(".!").split()
    changes = [each for each in SequenceMatcher(None, then, now, autojunk=False).get_opcodes() if each[0] != "equal"]
    if len(changes) != 1 or changes[0][0] != "replace":
        return ""
    _, first, last, start, end = changes[0]
    if max(last - first, end - start) > LONGEST_VALUE or last - first >= len(then) - 1:
        return ""
    return f"{' '.join(then[first:last])!r} became {' '.join(now[start:end])!r}"


def _another_value(slot: re.Pattern[str], newer: str, older: str) -> str:
    now, then = slot.search(newer), slot.search(older)
    if not (now and then) or _subject(now) != _subject(then):
        return ""
    value, earlier = now["value"].strip(), then["value"].strip()
    return "" if shared(meaning(value), meaning(earlier)) else f"{earlier!r} became {value!r}"


def _subject(found: re.Match[str]) -> str:
    return (found.groupdict().get("subject") or "").lower()


def _is_same_matter(newer: str, older: str) -> bool:
    return shared(meaning(newer), meaning(older)) >= SAME_MATTER


def _other_figures(newer: str, older: str) -> bool:
    now, then = figures(newer), figures(older)
    return bool(now and then) and not now & then


def _other_choice(newer: str, older: str) -> str:
    """ "Prefers tea" against "prefers coffee", and "tea over coffee" against "coffee over tea"."""
    now, then = _CHOICE.search(newer), _CHOICE.search(older)
    if not (now and then):
        return ""
    chosen, earlier = _OVER.split(now["value"])[0], _OVER.split(then["value"])[0]
    if meaning(chosen) and meaning(chosen) == meaning(_left_behind(then["value"])):
        return "the preference was turned around"
    short = max(len(meaning(now["value"])), len(meaning(then["value"]))) <= 2
    return f"{earlier!r} became {chosen!r}" if short and not meaning(chosen) & meaning(earlier) else ""


def _left_behind(value: str) -> str:
    parts = _OVER.split(value)
    return parts[-1] if len(parts) > 1 else ""
