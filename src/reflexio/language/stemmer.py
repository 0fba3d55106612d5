"""English words to their stems by Porter's rules (1980), so that `refunds` finds `refunded`."""

import re
from functools import lru_cache

_CONSONANT = "[^aeiou](?:[^aeiouy]*)"
_VOWEL = "[aeiouy][aeiou]*"
_ONE_RUN = re.compile(f"^(?:{_CONSONANT})?{_VOWEL}{_CONSONANT}")
_EXACTLY_ONE_RUN = re.compile(f"^(?:{_CONSONANT})?{_VOWEL}{_CONSONANT}(?:{_VOWEL})?$")
_TWO_RUNS = re.compile(f"^(?:{_CONSONANT})?(?:{_VOWEL}{_CONSONANT}){{2}}")
_HAS_VOWEL = re.compile(f"^(?:{_CONSONANT})?{_VOWEL}")
_DOUBLED = re.compile(r"([^aeiouylsz])\1$")
_SHORT_SYLLABLE = re.compile(f"^{_CONSONANT}[aeiouy][^aeiouwxy]$")

_SECOND = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble",
    "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate",
    "alism": "al", "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive",
    "biliti": "ble", "logi": "log",
}  # fmt: skip
_THIRD = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_FOURTH = {
    "al": "", "ance": "", "ence": "", "er": "", "ic": "", "able": "", "ible": "", "ant": "", "ement": "",
    "ment": "", "ent": "", "ion": "", "ou": "", "ism": "", "ate": "", "iti": "", "ous": "", "ive": "",
    "ize": "",
}  # fmt: skip


def _longest_ending(endings: dict[str, str]) -> re.Pattern[str]:
    longest_first = "|".join(sorted(endings, key=len, reverse=True))
    return re.compile(f"(?:{longest_first})$".replace("|ion|", "|(?<=[st])ion|"))


_STEPS = tuple(
    (_longest_ending(endings), endings, measure)
    for endings, measure in ((_SECOND, _ONE_RUN), (_THIRD, _ONE_RUN), (_FOURTH, _TWO_RUNS))
)


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """The stem of a lower-case word of the letters a to z; anything else comes back as it is.

    >>> stem("refunded"), stem("refunds"), stem("café")
    ('refund', 'refund', 'café')
    """
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    word = _y_to_i(_past_and_progressive(_plural(word)))
    for ending, endings, measure in _STEPS:
        word = _replaced(word, ending, endings, measure)
    return _final(word)


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past_and_progressive(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _ONE_RUN.match(word[:-3]) else word
    for ending in ("ed", "ing"):
        if word.endswith(ending) and _HAS_VOWEL.match(base := word[: -len(ending)]):
            return _mended(base)
    return word


def _mended(base: str) -> str:
    if base.endswith(("at", "bl", "iz")):
        return base + "e"
    if _DOUBLED.search(base):
        return base[:-1]
    return base + "e" if _SHORT_SYLLABLE.match(base) else base


def _y_to_i(word: str) -> str:
    return word[:-1] + "i" if word.endswith("y") and _HAS_VOWEL.match(word[:-1]) else word


def _replaced(word: str, ending: re.Pattern[str], endings: dict[str, str], measure: re.Pattern[str]) -> str:
    match = ending.search(word)
    if not match or not measure.match(base := word[: match.start()]):
        return word
    return base + endings[match[0]]


def _final(word: str) -> str:
    if word.endswith("e"):
        base = word[:-1]
        if _TWO_RUNS.match(base) or (_EXACTLY_ONE_RUN.match(base) and not _SHORT_SYLLABLE.match(base)):
            word = base
    return word[:-1] if word.endswith("ll") and _TWO_RUNS.match(word) else word
