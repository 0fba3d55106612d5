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
_FOURTH_ENDINGS = "al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize"


def _step(endings: dict[str, str], measure: re.Pattern[str]) -> tuple[re.Pattern[str], dict[str, str], re.Pattern[str]]:
    longest_first = "|".join(sorted(endings, key=len, reverse=True))
    return re.compile(f"(?:{longest_first})$".replace("|ion|", "|(?<=[st])ion|")), endings, measure


_STEPS = (
    _step(_SECOND, _ONE_RUN),
    _step(_THIRD, _ONE_RUN),
    _step(dict.fromkeys(_FOURTH_ENDINGS.split(), ""), _TWO_RUNS),
)


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """The stem of a lower-case word of the letters a to z; anything else comes back as it is.

    >>> stem("refunded"), stem("refunds"), stem("café")
    ('refund', 'refund', 'café')
    """
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    word = _without_past_and_progressive(word)
    if word.endswith("y") and _HAS_VOWEL.match(word[:-1]):
        word = word[:-1] + "i"
    for ending, endings, measure in _STEPS:
        match = ending.search(word)
        if match and measure.match(base := word[: match.start()]):
            word = base + endings[match[0]]
    if word.endswith("e"):
        base = word[:-1]
        if _TWO_RUNS.match(base) or (_EXACTLY_ONE_RUN.match(base) and not _SHORT_SYLLABLE.match(base)):
            word = base
    return word[:-1] if word.endswith("ll") and _TWO_RUNS.match(word) else word


def _without_past_and_progressive(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _ONE_RUN.match(word[:-3]) else word
    base = word[:-2] if word.endswith("ed") else word[:-3] if word.endswith("ing") else ""
    if not _HAS_VOWEL.match(base):
        return word
    if _DOUBLED.search(base):
        return base[:-1]
    return base + "e" if base.endswith(("at", "bl", "iz")) or _SHORT_SYLLABLE.match(base) else base
