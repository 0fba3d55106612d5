"""How long a fact holds: traits for good, plans as long as the time they name."""

import re

from reflexio.models.status import ProfileTimeToLive as Live

_SPANS = (
    (Live.ONE_DAY, r"today|tonight|tomorrow|this\s+(?:morning|afternoon|evening)|right\s+now|at\s+the\s+moment|heute|morgen|hoy|mañana|demain|"
     r"in\s+(?:an|a\s+few|two|three|\d+)\s+(?:hours?|minutes?)"),
    (Live.ONE_WEEK, r"this\s+(?:week|weekend)|next\s+(?:week|weekend|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|"
     r"(?:on|this)\s+(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)|in\s+(?:a\s+few|two|three|\d)\s+days|nächste\s+woche|"
     r"la\s+semaine\s+prochaine|la\s+próxima\s+semana"),
    (Live.ONE_MONTH, r"this\s+month|next\s+month|in\s+(?:a\s+(?:few|couple\s+of)|two|three|\d+)\s+weeks|for\s+a\s+few\s+weeks|temporarily|"
     r"for\s+now|(?:really|very|so)\s+sick|has\s+the\s+flu|in\s+hospital|upcoming\s+(?:trip|exam|meeting|event)"),
    (Live.ONE_QUARTER, r"this\s+(?:quarter|season|semester|term|summer|winter|spring|autumn|fall)|next\s+(?:quarter|season|semester|term|"
     r"summer|winter|spring|autumn|fall)|in\s+(?:a\s+few|two|three|\d)\s+months"),
    (Live.ONE_YEAR, r"this\s+year|next\s+year|by\s+the\s+end\s+of\s+the\s+year|these\s+days|currently|lately"),
)  # fmt: skip
_NAMED = tuple((span, re.compile(rf"\b(?:{words})\b", re.I)) for span, words in _SPANS)


def time_to_live(about: str, told: str) -> Live:
    """>>> time_to_live("goal", "I'm flying to Oslo tomorrow").value
    'one_day'
    >>> time_to_live("identity", "I live in Oslo").value
    'infinity'
    """
    for span, named in _NAMED:
        if named.search(told):
            return span
    return Live.ONE_QUARTER if about == "goal" else Live.INFINITY
