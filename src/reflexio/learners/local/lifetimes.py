"""How long a fact holds: traits for good, plans as long as the time they name."""

from reflexio.learners.local.phrases import phrase
from reflexio.models.status import ProfileTimeToLive as Live

_SPANS = (
    (Live.ONE_DAY, r"today|tonight|tomorrow|this (morning|afternoon|evening)|right now|at the moment|heute|morgen|"
    r"hoy|mañana|demain|"
     r"in (an|a few|two|three|\d+) (hours?|minutes?)"),
    (Live.ONE_WEEK, r"this (week|weekend)|next (week|weekend|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|"
     r"(on|this) (monday|tuesday|wednesday|thursday|friday|saturday|sunday)|in (a few|two|three|\d) days|nächste woche|"
     r"la semaine prochaine|la próxima semana"),
    (Live.ONE_MONTH, r"this month|next month|in (a (few|couple of)|two|three|\d+) weeks|for a few weeks|temporarily|"
     r"for now|(really|very|so) sick|has the flu|in hospital|upcoming (trip|exam|meeting|event)"),
    (Live.ONE_QUARTER, r"this (quarter|season|semester|term|summer|winter|spring|autumn|fall)|next (quarter|season|"
    r"semester|term|"
     r"summer|winter|spring|autumn|fall)|in (a few|two|three|\d) months"),
    (Live.ONE_YEAR, r"this year|next year|by the end of the year|these days|currently|lately"),
)  # fmt: skip
_NAMED = tuple((span, phrase(rf"\b({words})\b")) for span, words in _SPANS)


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
