"""Reading a score out of a judge's words, in all the forms that judges write it. In doubt there is none.

A wrong reading ends a run with a success that nobody has seen, so a bare whole number in a sentence, a number above
its scale, a range or a version is no score.
"""

import re

LONGEST_OPENING = 200

_NUMBER = r"[+-]?(?:[0-9]{1,9}(?:[.,][0-9]{1,18})?|[.,][0-9]{1,18})(?:[eE][+-]?[0-9]{1,3})?"
_VALUE = rf"(?P<value>{_NUMBER})(?:\s*(?P<percent>%)|\s*(?:/|out\s+of|of)\s*(?P<scale>{_NUMBER}))?"
_END = r"(?![0-9A-Za-z])(?![.,][0-9])(?!\s*[-–—/]\s*[0-9])"
_MARKS = r"[\s*_`\"']*"
_LABELLED = re.compile(rf"score{_MARKS}[:=]{_MARKS}{_VALUE}{_END}", re.IGNORECASE)
_ALONE = re.compile(rf"{_MARKS}{_VALUE}{_END}{_MARKS}\.?{_MARKS}")
_OPENING = re.compile(rf"{_MARKS}(?=[^\n]*[.,/%])(?![0-9]+[.,]?\s){_VALUE}{_END}{_MARKS}(?:[:;,.(\n–—]|-\s)")
_ASKED_FOR = re.compile(rf"^[ \t*_`\"'{{#>-]*{_LABELLED.pattern}", re.IGNORECASE | re.MULTILINE)
_CONCLUDING = re.compile(rf"(?:\b(?:final|overall|total){_MARKS}|[{{,]\s*[\"']){_LABELLED.pattern}", re.IGNORECASE)
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]*,[0-9]{3}")


def parse_score(text: str) -> float:
    """The score in a judge's answer, from 0 to 1; 0.0 when there is none.

    >>> [parse_score(text) for text in ("score: 0.7", "score: 8/10", "score: 85%", "attempt 1 was good")]
    [0.7, 0.8, 0.85, 0.0]
    """
    found = read_score(text)
    return 0.0 if found is None else found


def read_score(text: str) -> float | None:
    """The same, with None when there is none.

    A line that begins with `score:` is the format asked for, and the first such line counts. Otherwise several
    labelled scores have to agree, or one is called the final or overall one. Without any label, the answer has to
    begin with the number.
    """
    asked_for = _readable(_ASKED_FOR, text)
    if asked_for:
        return asked_for[0]
    labelled = _readable(_LABELLED, text)
    if len(set(labelled)) > 1:
        labelled = _readable(_CONCLUDING, text)
        return labelled[-1] if labelled else None
    if labelled:
        return labelled[0]
    first = text.strip().partition("\n")[0].strip()[:LONGEST_OPENING]
    match = _ALONE.fullmatch(first) or _OPENING.match(first)
    return _value(match) if match else None


def _readable(pattern: re.Pattern[str], text: str) -> list[float]:
    return [value for match in pattern.finditer(text) if (value := _value(match)) is not None]


def _value(match: re.Match[str]) -> float | None:
    """From 0 to 1; a negative score is none at all, and one above its scale could mean anything."""
    value, percent, scale = match.group("value", "percent", "scale")
    if "," in value and _THOUSANDS.fullmatch(value):
        return None
    whole = 100.0 if percent else _number(scale) if scale else 1.0
    if whole <= 0:
        return None
    score = _number(value) / whole
    return max(0.0, score) if score <= 1.0 else None


def _number(text: str) -> float:
    return float(text.replace(",", "."))
