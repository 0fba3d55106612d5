"""What counts as a word, in any script, and how a row's words are stored for search.

This is the same for every database: texts are split here and not by its tokeniser. A term is stored as a token of seven
letters. Nothing in a text can then be mistaken for the query language, and with the blank after it a row's tokens are
also an array of 64-bit numbers, which numpy counts without parsing.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from json import dumps

import numpy as np
from numpy.typing import NDArray

from reflexio.language.stemmer import stem

ROW_END = "-------\n"  # as wide as a token with its blank, and no token
_QUERY_END = 4_000  # characters that are read at either end of a long query
_MOST_TERMS = 128
_LETTERS = "abcdefghijklmnopqrstuvwxyz012345"
_LONGEST_TERM = 20  # a longer "word" is a key, a hash or an encoded file: its beginning is enough to find it

_ASCII_WORD = re.compile("[a-z0-9]+")
# Accents and vowel points that writers often leave out.
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

# English words that shape a question and say little about its subject. In other languages the frequency of a word among
# the searched rows has to tell this.
_FUNCTION_WORDS = """
    a about after again all also am an and any are aren as at be because been before being both but
    by can cannot could couldn d did didn do does doesn doing don down during each either else ever
    few for from further had hadn has hasn have haven having he her here hers herself him himself
    his how i if in into is isn it its itself just ll m may me might more most much must my myself
    neither no nor not of off on once only or other our ours ourselves out over own please re s same
    shall she should shouldn since so some such t than that the their theirs them themselves then
    there these they this those through to too under until up upon us ve very was wasn we were weren
    what when where whether which while who whom whose why will with won would wouldn you your yours
    yourself
"""
FUNCTION_WORDS = frozenset(stem(word) for word in _FUNCTION_WORDS.split())


@dataclass(frozen=True, slots=True)
class TermScope:
    """Whose rows are searched: those of everyone in an organisation, or those of one user.

    Digests, so that no id can be mistaken for another one or for a part of the query language. `org` is the
    organisation itself, for databases that keep its rows together.
    """

    org: str
    everyone: str
    user: str | None = None

    @classmethod
    def of(cls, org: str, kind: str, user: str | None = None) -> "TermScope":
        return cls(org, _digest(org, kind), None if user is None else _digest(org, kind, user))

    @property
    def narrowest(self) -> str:
        return self.everyone if self.user is None else self.user


def _digest(*parts: str) -> str:
    return "s" + blake2b(dumps(parts).encode(), digest_size=12).hexdigest()


def terms(text: str) -> list[str]:
    """The words of a text in their order, folded and stemmed; scripts without blanks as characters and pairs.

    >>> terms("The café's refunds: 退款!")
    ['the', 'cafe', 's', 'refund', '退', '款', '退款']
    """
    if text.isascii():
        return [stem(word)[:_LONGEST_TERM] for word in _ASCII_WORD.findall(text.lower())]
    bare = _MARK.sub("", unicodedata.normalize("NFKD", text.casefold()))
    words: list[str] = []
    for piece in _PIECE.finditer(unicodedata.normalize("NFC", bare).lower()):
        if run := piece["run"]:
            words += [*run, *(run[at : at + 2] for at in range(len(run) - 1))]
        else:
            words.append(stem(piece[0])[:_LONGEST_TERM])
    return words


def query_terms(query: str) -> list[str]:
    """The different words to search for, function words last. Only the beginning and end of a long query are read."""
    read = query if len(query) <= 2 * _QUERY_END else f"{query[:_QUERY_END]} {query[-_QUERY_END:]}"
    return sorted(dict.fromkeys(terms(read)), key=FUNCTION_WORDS.__contains__)[:_MOST_TERMS]


@lru_cache(maxsize=200_000)
def token(term: str) -> str:
    """Seven letters that stand for a term; two terms share them once in 34 thousand million pairs."""
    number = int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=5).digest())
    return "".join(_LETTERS[(number >> shift) & 31] for shift in range(0, 35, 5))


def tokens(of: Sequence[str]) -> str:
    """Terms as their tokens, each followed by a blank."""
    return "".join(f"{token(term)} " for term in of)


def as_numbers(text: str) -> NDArray[np.uint64]:
    """Tokens as numbers, in their order."""
    return np.frombuffer(text.encode(), np.uint64)


_ROW_END = as_numbers(ROW_END)[0]


@dataclass(frozen=True, slots=True)
class ScopeSize:
    """How many rows a scope has and how many words are in them."""

    rows: int
    words: int

    @property
    def mean_length(self) -> float:
        return max(1.0, self.words / max(1, self.rows))


@dataclass(frozen=True, slots=True)
class TermCounts:
    """How often each term of a query (down) occurs in each row (across), and how long the rows are."""

    times: NDArray[np.float32]
    lengths: NDArray[np.float64]

    @classmethod
    def of(cls, rows: str, query: Sequence[str]) -> "TermCounts":
        """Counts in rows of tokens that follow each other, each ended by `ROW_END`."""
        words = as_numbers(rows)
        ends = np.flatnonzero(words == _ROW_END)
        places = [np.flatnonzero(words == number) for number in as_numbers(tokens(query))]
        inside = np.searchsorted(ends, np.concatenate(places))
        inside += np.repeat(np.arange(len(places)) * len(ends), [len(of_term) for of_term in places])
        times = np.bincount(inside, minlength=len(places) * len(ends)).reshape(len(places), len(ends))
        return cls(times.astype(np.float32), np.diff(ends, prepend=-1) - 1.0)

    def of_rows(self, chosen: NDArray[np.bool_]) -> "TermCounts":
        return TermCounts(self.times[:, chosen], self.lengths[chosen])

    @property
    def rows_with(self) -> NDArray[np.float64]:
        return np.asarray(np.count_nonzero(self.times, axis=1), np.float64)

    @property
    def size(self) -> ScopeSize:
        return ScopeSize(len(self.lengths), int(self.lengths.sum()))
