"""What belongs to one case only is left out of triggers and instructions: numbers, names, dates and identifiers.

"Refund order 1857 for Tom on Friday" becomes "refund an order"; "under five bullet points" stays as it is.
"""

import re
from functools import cache

from reflexio.learners.local.sentences import CUES

_SPACES = re.compile(r"\s{2,}")
_BEFORE_MARK = re.compile(r"(?<!\s)\s++(?=[,.!?])")
_MARKS_AT_END = " \t\n\r\f\v\u00a0,;:–-"


@cache
def _general_names() -> frozenset[str]:
    return frozenset(CUES.lists["general_names"])


def without_identifiers(text: str) -> str:
    """Without addresses, codes and the numbers of orders. Other numbers stay: they are what an instruction says.

    >>> without_identifiers("Use POST for order 1857-A, at most 3 times.")
    'Use POST for the order, at most 3 times.'
    """
    text = CUES["address"].sub(" ", text)
    text = CUES["numbered_thing"].sub(_thing_alone, text)
    return _tidy(CUES["code"].sub(" ", text))


def generalised(text: str) -> str:
    """A request without what belongs to its own case.

    >>> generalised("how much is the flight to Oslo on May 20th")
    'how much is the flight'
    >>> generalised("refund order 1857 for Tom"), generalised("convert 3 miles")
    ('refund the order', 'convert some miles')
    """
    text = CUES["date"].sub(" ", without_identifiers(text))
    text = CUES["name_of_somebody"].sub("somebody", CUES["named"].sub(_general_name, text))
    text = CUES["amount"].sub(" ", text)
    return _tidy(CUES["count"].sub("some", text))


def _thing_alone(match: re.Match[str]) -> str:
    article = "" if match["article"] else "the "
    return f"{match['article'] or ''}{article}{match['thing']}"


def _general_name(match: re.Match[str]) -> str:
    """Names of languages and products say what a request is about; those of people and places do not."""
    return match[0] if match["name"].split()[0].lower().strip(",.") in _general_names() else ""


def _tidy(text: str) -> str:
    return _BEFORE_MARK.sub("", _SPACES.sub(" ", text)).rstrip(_MARKS_AT_END).strip()
