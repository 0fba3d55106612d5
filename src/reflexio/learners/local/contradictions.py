"""Whether two learnings cannot both hold: yes against no, or another value for what has only one."""

import re

from reflexio.learners.local.words import figures, is_negative, meaning, shared

SAME_MATTER = 0.6

_PLACE = r"(?P<value>[^,.;!?]{2,60})"
SINGLE_VALUED = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        rf"\b(?:lives?|living|based|located|resides?|moved|relocated|moving|wohne|vivo|habite)\s+(?:back\s+)?(?:in|"
        rf"to|near|en|à)\s+{_PLACE}",
        rf"\b(?:works?|working)\s+(?:as|for|at)\s+{_PLACE}",
        rf"\b(?P<subject>(?:full |first |last |nick)?name)\s+is\s+{_PLACE}|"
        rf"\bcall the user\s+(?P<value2>[^,.;!?]{{2,40}})",
        rf"\b(?P<subject>(?:favou?rite|preferred|go-to)\s+[^,.;!?]{{2,40}}?)\s+(?:is|are)\s+{_PLACE}",
        rf"\buser's\s+(?P<subject>[\w\s-]{{2,30}}?)\s+(?:is|are)\s+{_PLACE}",
        rf"\bis\s+{_PLACE.replace('[^,.;!?]{2,60}', r'[0-9]{1,3}')}\s+years?\s+old",
        rf"\b(?P<subject>budget|deadline|limit)\s+(?:\w+\s+)?(?:is|of)\s+{_PLACE}",
    )
)
"""What a person has one of. The newest value is the true one."""
_PREFERENCE = re.compile(
    r"\b(?:prefers?|likes?|loves?|enjoys?|wants?|uses?|drinks?|eats?|use|answer|reply|respond|write|"
    r"speak)\s+(?P<value>[^,.;!?]{2,80})",
    re.I,
)


def contradiction(newer: str, older: str, similarity: float) -> str:
    """Why the newer takes the older's place; empty when both can hold."""
    for slot in SINGLE_VALUED:
        if reason := _another_value(slot, newer, older):
            return reason
    words, others = meaning(newer), meaning(older)
    if shared(words, others) >= SAME_MATTER and is_negative(newer) != is_negative(older) and similarity >= 0.5:
        return "one says yes and the other no"
    if (
        similarity >= 0.6
        and figures(newer)
        and figures(older)
        and not figures(newer) & figures(older)
        and shared(words, others) >= SAME_MATTER
    ):
        return "the figure changed"
    return _turned_around(newer, older, similarity)


def _another_value(slot: re.Pattern[str], newer: str, older: str) -> str:
    now, then = slot.search(newer), slot.search(older)
    if not (now and then) or _group(now, "subject") != _group(then, "subject"):
        return ""
    value, earlier = _value(now), _value(then)
    return f"{earlier!r} became {value!r}" if not shared(meaning(value), meaning(earlier)) else ""


def _turned_around(newer: str, older: str, similarity: float) -> str:
    """ "Prefers tea" against "prefers coffee", and "tea over coffee" against "coffee over tea"."""
    now, then = _PREFERENCE.search(newer), _PREFERENCE.search(older)
    if not (now and then) or similarity < 0.5:
        return ""
    first, _, second = _halves(now["value"])
    was_first, _, was_second = _halves(then["value"])
    if second and was_second and meaning(first) == meaning(was_second) and meaning(second) == meaning(was_first):
        return "the preference was turned around"
    if similarity >= 0.6 and now.group().split()[0].lower() == then.group().split()[0].lower() in _EXCLUSIVE:
        short = max(len(meaning(now["value"])), len(meaning(then["value"]))) <= 2
        return (
            f"{then['value']!r} became {now['value']!r}"
            if short and meaning(now["value"]) != meaning(then["value"])
            else ""
        )
    return ""


_EXCLUSIVE = {"prefers", "prefer", "answer", "reply", "respond", "write", "speak"}


def _halves(value: str) -> tuple[str, str, str]:
    parts = re.split(r"\s+(?:over|to|rather than|instead of|more than)\s+", value, maxsplit=1)
    return parts[0], "", parts[1] if len(parts) > 1 else ""


def _value(found: re.Match[str]) -> str:
    return _group(found, "value") or _group(found, "value2")


def _group(found: re.Match[str], name: str) -> str:
    return (found.groupdict().get(name) or "").strip().lower()
