"""The words of a text that carry meaning, in a form that survives inflection."""

import re
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?", re.U)
_FORMS = """
    a an the and or but if then so as of at by for from in into on onto to up with without over under about than that
    this these those it its is are was were be been being am do does did doing have has had having will would can
    could should shall may might must i you he she we they me him her us them my your his their our user agent users
    user's not no nor don't doesn't didn't isn't aren't won't can't cannot never always usually often really very just
    also too please more most some any all each every what which who whom when where why how there here out only own
    same such while because since although though via per let get got make made use used using say says said want
    wants need needs answer it's i'm you're they're that's there's one ones thing things anything something instead
    tend tends generally typically mostly exactly currently ask asks asked
"""
_EMPTY = frozenset(_FORMS.split())
_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ied", "edly", "ed", "ers", "er", "ly", "es", "s", "e")
_NEGATIVE = re.compile(
    r"\b(?:not|no|never|none|without|n['’]t|don['’]t|doesn['’]t|didn['’]t|isn['’]t|aren['’]t|won['’]t|can['’]t|"
    r"cannot|avoids?|avoiding|dislikes?|hates?|loathes?|detests?|despises?|refuses?|stop(?:ped|s)?|quit|no longer|"
    r"anymore|aversion|allergic|intolerant|skip|omit|instead of)\b",
    re.I,
)


@lru_cache(maxsize=4096)
def meaning(text: str) -> frozenset[str]:
    return frozenset(_stem(word) for word in _WORD.findall(text.lower().replace("’", "'")) if word not in _EMPTY)


def figures(text: str) -> frozenset[str]:
    """Numbers, and names such as file paths and flags: two texts that differ in them say different things."""
    return frozenset(re.findall(r"\d[\d.,:]*\d|\d", text))


def is_negative(text: str) -> bool:
    return len(_NEGATIVE.findall(text)) % 2 == 1


def shared(one: frozenset[str], other: frozenset[str]) -> float:
    """How much of the smaller set stands in the other."""
    return len(one & other) / min(len(one), len(other)) if one and other else 0.0


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
