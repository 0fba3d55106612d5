"""Requests to forget."""

import re

from reflexio.learners.local.order_cues import FORGET, LEAD_IN, NOT_FORGOTTEN
from reflexio.learners.local.persons import of_the_user
from reflexio.learners.local.sentences import Sentence

_NOTHING_NAMED = re.compile(r"(?:what|how|to|it|this|these|those|why|who)\b", re.I)
EVERYTHING = "everything about the user"


def to_forget(sentence: Sentence) -> str:
    """What is to be forgotten, told of the user; empty when a sentence is no such request."""
    own = LEAD_IN.sub("", sentence.own).rstrip(" .!?")
    text = sentence.text[len(sentence.own) - len(LEAD_IN.sub("", sentence.own)) :]
    found = FORGET.match(own)
    if not found or NOT_FORGOTTEN.match(own):
        return ""
    group = next(name for name, words in found.groupdict().items() if words)
    what = text[found.start(group) : found.end(group)].strip()
    if _NOTHING_NAMED.match(what):
        return ""
    if what.lower() in {"me", "about me", "i", "everything", "everything about me"}:
        return EVERYTHING
    return of_the_user(what).rstrip(".")
