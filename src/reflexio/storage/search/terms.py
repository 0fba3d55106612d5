"""What counts as a word, in any script, and how a row's words are written down to be searched.

The same for every database: texts are taken apart here and not by its tokeniser. A term is written as a token
of seven letters, so that nothing in a text can be mistaken for the search language, and that with the blank
after it a row's tokens are also an array of 64-bit numbers, which numpy counts without parsing.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from reflexio.language.stemmer import stem
from reflexio.storage.search.function_words import FUNCTION_WORDS

ROW_END = "-------\n"  # as wide as a token with its blank, and no token
_READ = 4_000  # letters of a query that are read at its beginning and at its end
_MOST_TERMS = 128
_LETTERS = "abcdefghijklmnopqrstuvwxyz012345"
_UNREAD = 20  # a longer "word" is a key, a hash or an encoded file: its beginning is enough to find it

_ASCII_WORD = re.compile("[a-z0-9]+")
# Accents and vowel points that writers leave out as often as not.
_MARK = re.compile("[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670]+")
# Scripts written without blanks between words: Thai, Lao, Myanmar, Khmer, kana and Han; and Hangul,
# whose words carry their particles.
_UNSEGMENTED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
# Vowel signs of Indic scripts are no letters to `re`, but part of their words.
_INDIC = "\u0900-\u0963\u0966-\u0dff"
_EMOJI = "\u2600-\u27bf\U0001f000-\U0001faff"
_PIECE = re.compile(f"(?P<run>[{_UNSEGMENTED}]+)|(?P<emoji>[{_EMOJI}])|(?:(?![{_UNSEGMENTED}])(?:[^\\W_]|[{_INDIC}]))+")


def terms(text: str) -> list[str]:
    """The words of a text in their order: folded, stemmed; scripts without blanks as characters and pairs.

    >>> terms("The café's refunds: 退款!")
    ['the', 'cafe', 's', 'refund', '退', '款', '退款']
    """
    if text.isascii():
        return [_short(stem(word)) for word in _ASCII_WORD.findall(text.lower())]
    found: list[str] = []
    for piece in _PIECE.finditer(_folded(text)):
        found += _characters_and_pairs(piece[0]) if piece["run"] else [_short(stem(piece[0]))]
    return found


def query_terms(query: str) -> list[str]:
    """The different words to search for. Of an endless query the beginning and the end are read."""
    read = query if len(query) <= 2 * _READ else f"{query[:_READ]} {query[-_READ:]}"
    different = dict.fromkeys(terms(read))
    return sorted(different, key=FUNCTION_WORDS.__contains__)[:_MOST_TERMS]


def _folded(text: str) -> str:
    bare = _MARK.sub("", unicodedata.normalize("NFKD", text.casefold()))
    return unicodedata.normalize("NFC", bare).lower()


def _characters_and_pairs(run: str) -> list[str]:
    return [*run, *(run[at : at + 2] for at in range(len(run) - 1))]


def _short(word: str) -> str:
    return word if len(word) <= _UNREAD else word[:_UNREAD]


@lru_cache(maxsize=200_000)
def token(term: str) -> str:
    """Seven letters that stand for a term; two terms share them once in 34 thousand million pairs."""
    number = int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=5).digest())
    return "".join(_LETTERS[(number >> shift) & 31] for shift in range(0, 35, 5))


def written(text: str) -> str:
    """A text as its tokens, each followed by a blank."""
    return "".join(f"{token(term)} " for term in terms(text))


def numbers(of: Sequence[str]) -> NDArray[np.uint64]:
    """Terms as the numbers that stand for them in `as_numbers`."""
    return as_numbers("".join(f"{token(term)} " for term in of).encode())


def as_numbers(text: bytes) -> NDArray[np.uint64]:
    """The tokens of a written text as numbers, in their order."""
    return np.frombuffer(text, np.uint64)
