"""Which language a text is written in: by its script, and by the short words that every sentence needs.

Five languages besides English are read by rules; of the others it is enough to know that they are others. A text that
decides nothing, such as a name or a number, has no language.
"""

import re
from functools import cache, lru_cache
from pathlib import Path

from reflexio.language.words import CueFile

ENGLISH = "en"
OTHER = "other"
"""Any language that the rules do not read."""
UNDECIDED = ""

MOST_READ = 400  # characters: the language shows early
FEWEST_WORDS = 5  # of which none is known before a text counts as another language
LEAST_SHARE = 0.1  # of the words of a longer text that the language's short words make up
LONG = 12  # words
EXPECTED = 0.7  # votes for the language of the conversation
SURE_OF_OTHER = 1.0  # votes: one word that no other language has, or several shared ones

_CUES = CueFile(Path(__file__).with_name("identify.toml"))
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_WORD = re.compile(r"[^\W\d_]+")
_NO_WORD = re.compile(r"\S*(?:://|@|[\w-]\.\w|[/\\_={}<>|])\S*|\b\w*\d\w*\b")  # addresses, paths, identifiers
_HAS_NO_WORD = re.compile(r"[\d@/\\_={}<>|]|\w\.\w")
_LATIN_ENDS = "\u024f"
_LATIN_MORE = re.compile(r"[\u1e00-\u1eff]")


@cache
def _votes() -> dict[str, dict[str, float]]:
    """By word: the languages that have it, with weights that are smaller for a word that several languages share."""
    languages: dict[str, list[str]] = {}
    for language, words in _CUES.data["words"].items():
        for word in words.split():
            languages.setdefault(word, []).append(language)
    return {word: {language: 1 / len(of) for language in of} for word, of in languages.items()}


@cache
def _letters() -> dict[str, dict[str, float]]:
    """By letter: the languages that it speaks for."""
    votes: dict[str, dict[str, float]] = {}
    for language, letters in _CUES.data["letters"].items():
        for letter in letters.split():
            votes.setdefault(letter, {})[language] = 0.0
    return {letter: {language: 0.6 / len(of) for language in of} for letter, of in votes.items()}


@lru_cache(maxsize=4096)
def language_of(text: str, expected: str = UNDECIDED) -> str:
    """The code of a language that is read by rules, `OTHER`, or `UNDECIDED`. What is expected needs less evidence.

    >>> language_of("Ich bin Vegetarier."), language_of("Sono vegetariano."), language_of("Tokyo 2020")
    ('de', 'other', '')
    """
    text = text[:MOST_READ].lower()
    if not text.isascii() and (by_script := _by_script(text)):
        return by_script
    words = _WORD.findall(_NO_WORD.sub(" ", text) if _HAS_NO_WORD.search(text) else text)
    scores: dict[str, float] = {}
    votes = _votes()
    hits = 0
    for word in words:
        if weights := votes.get(word):
            hits += 1
            for language, weight in weights.items():
                scores[language] = scores.get(language, 0.0) + weight
    if not text.isascii():
        for letter in set(text) & _letters().keys():
            for language, weight in _letters()[letter].items():
                scores[language] = scores.get(language, 0.0) + weight
    if not scores or (len(words) >= LONG and hits < LEAST_SHARE * len(words)):
        return OTHER if len(words) >= FEWEST_WORDS else UNDECIDED
    if expected in scores:
        scores[expected] += EXPECTED
    return _best(scores)


def _best(scores: dict[str, float]) -> str:
    best = max(scores, key=lambda language: (scores[language], language == ENGLISH, language in READ))
    if best in READ:
        return best
    return OTHER if scores[best] >= SURE_OF_OTHER else UNDECIDED


def _by_script(text: str) -> str:
    """The language that a script other than Latin decides; empty for Latin."""
    han, kana = len(_HAN.findall(text)), len(_KANA.findall(text))
    latin = other = 0
    for letter in text:
        if letter.isalpha():
            if letter <= _LATIN_ENDS or _LATIN_MORE.match(letter):
                latin += 1
            else:
                other += 1
    other -= han + kana
    # A character of Chinese counts as much as several letters.
    if 3 * (han + kana) + other <= latin:
        return UNDECIDED
    if other > han + kana:
        return OTHER
    return OTHER if kana * 8 > han else "zh"


READ = frozenset((ENGLISH, "de", "es", "fr", "pt", "zh"))
"""The languages that the rules read."""
