"""The words of a text that carry meaning, the words that negate, and patterns of words.

Which of them count is decided here once; full-text search has its own list, because its index is stored.
"""

import re
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

from reflexio.language.stemmer import stem

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_BLANKS = re.compile(r"[^\S\n]+")
_LINE_ENDS = re.compile(r" ?\n[\n ]*")
_FIGURE = re.compile(r"\d[\d.,:]*\d|\d")


class CueFile(dict[str, re.Pattern[str]]):
    """The patterns of a TOML file by name, read and compiled when first used. `words.toml` explains the format."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    @cached_property
    def data(self) -> dict[str, Any]:
        import tomllib

        return tomllib.loads(self._path.read_text(encoding="utf-8"))

    def __missing__(self, name: str) -> re.Pattern[str]:
        phrases = self.data.get("phrases", {})
        pattern = self.compile(phrases[name]) if name in phrases else re.compile(_join(self.data["regexes"][name]))
        self[name] = pattern
        return pattern

    def compile(self, pattern: str) -> re.Pattern[str]:
        """A pattern of the file as a `phrase`."""
        parts = self.data["parts"]
        return phrase(re.sub(r"\{([a-z_]+)\}", lambda part: _join(parts[part[1]]), _join(pattern)))

    @cached_property
    def lists(self) -> dict[str, frozenset[str]]:
        return {name: frozenset(words.split()) for name, words in self.data["lists"].items()}


def _join(lines: str) -> str:
    return re.sub(r"^ +|\n", "", lines, flags=re.M)


CUES = CueFile(Path(__file__).with_name("words.toml"))


@cache
def _words_without_meaning() -> frozenset[str]:
    return CUES.lists["function_words"] | CUES.lists["prepositions"] | CUES.lists["in_every_request"]


def words(text: str) -> list[str]:
    return _WORD.findall(text.lower().replace("’", "'"))


def collapsed(text: str, most: int) -> str:
    """The beginning of a text, with one blank for each run of blanks and one line end for each of lines.

    Patterns look along a run of blanks from each of them: what a caller wrote is read in this form.

    >>> collapsed("Be  brief.\\n \\n Always.", 100)
    'Be brief.\\nAlways.'
    """
    return _LINE_ENDS.sub("\n", _BLANKS.sub(" ", text[:most]))


def root(word: str) -> str:
    """The stem of a word, of an adverb that of its adjective: Porter keeps the ending of "briefly"."""
    base = word[:-2] if len(word) > 6 and word.endswith("ly") else word
    return base if base in CUES.lists["not_stemmed"] else stem(base)


@lru_cache(maxsize=4096)
def content_words(text: str) -> frozenset[str]:
    """The stems of the words that carry meaning."""
    empty = _words_without_meaning()
    return frozenset(root(word) for word in words(text) if not (word in empty or is_negation(word)))


def says_nothing_alone(word: str) -> bool:
    """Whether a word, in lower case, is no answer by itself in any language: grammar, yes and no, courtesies."""
    return word in CUES.lists["says_nothing_alone"] or is_negation(word)


def is_without_meaning(word: str) -> bool:
    """Whether a word, in lower case, says nothing even inside a sentence."""
    return word in _words_without_meaning() or says_nothing_alone(word)


def figures(text: str) -> frozenset[str]:
    """The numbers of a text: two texts that differ in them say different things."""
    return frozenset(_FIGURE.findall(text))


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """How much of the smaller set is in the other one."""
    return len(one & other) / min(len(one), len(other)) if one and other else 0.0


def is_negation(word: str) -> bool:
    return word in CUES.lists["negations"] or word.endswith("n't")


def is_negative(text: list[str]) -> bool:
    """Whether words say no. Two negations cancel each other."""
    return sum(is_negation(word) or word in CUES.lists["refusals"] for word in text) % 2 == 1


def phrase(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """A regular expression that ignores case, in which a space is any space, an apostrophe is either apostrophe, and
    parentheses only group.

    >>> bool(phrase("I don't (really )?like").match("i  don’t really  like"))
    True
    """
    grouped = re.sub(r"(?<!\\)\((?!\?)", "(?:", pattern)
    return re.compile(grouped.replace("'", "['’]").replace(" ", r"\s+"), re.I | flags)
