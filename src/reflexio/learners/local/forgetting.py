"""Requests to forget."""

import re

from reflexio.learners.local.order_cues import LEAD_IN
from reflexio.learners.local.persons import of_the_user
from reflexio.learners.local.phrases import phrase
from reflexio.learners.local.sentences import Sentence

FORGET = phrase(
    r"^(can you |could you |i want you to |i'd like you to |you can |please |just |now )*("
    r"forget (what i (said|told you) (about|regarding) |everything (you know )?(about )?|all (you know )?about |"
    r"that |about |what you know (about )?)?(?P<what>(i\b|my\b|me\b|the\b|our\b|we\b|\w).{1,200})|"
    r"(delete|remove|erase|drop|clear|wipe) (everything|all|anything|what(ever)?|the (fact|note|preference|rule|"
    r"memory))?\s*(that )?(you('ve| have)? (know|learned|learnt|stored|saved|remember(ed)?|noted) )?(about|on|"
    r"regarding|that) (?P<what2>.{2,200})|(delete|remove|erase) (?P<what3>.{2,150}?) from (your )?(memory|profile|"
    r"records?|notes?)|(do not|don't|stop) (remember(ing)?|stor(e|ing)|keep(ing)? track of) (?P<what4>.{2,200})|"
    r"vergiss\s*,?\s*(dass )?(?P<what5>.{3,200})|olvida (que )?(?P<what6>.{3,200})|oublie (que )?(?P<what7>.{3,200}))$",
    re.S,
)
NOT_FORGOTTEN = phrase(
    r"^(forget (it|that|this|about (it|that|this)|you|him|her|them|the (whole )?(thing|idea))\s*[.!,]?\s*$|"
    r"forget to\b)",
)
_NOTHING_NAMED = phrase(r"(what|how|to|it|this|these|those|why|who)\b")
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
