"""Text to the token ids of an uncased BERT model: clean, lower-case, strip accents, split, look up.

The ids are those of the reference tokeniser, with two differences on purpose: a special token written out in
a text ("[SEP]") is ordinary text, so that nobody's words steer the model, and only the first
`READ_CHARACTERS` are read, so that a text of a megabyte costs no more than a long one.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

READ_CHARACTERS = 32_768  # 254 pieces of at most 100 characters and a space each fit
LONGEST_WORD = 100  # longer ones are unknown, as in the reference
LONGEST_REMEMBERED = 64
REMEMBERED = 32_768

# Python takes these control characters for white space; the model's cleaning drops them.
_FALSE_SPACES = re.compile("[\x0b\x0c\x1c-\x1f\x85]")
_CHUNK = re.compile(r"\S+")
# Unassigned characters stay and become unknown words, so that a newer Unicode table changes nothing here.
_DROPPED = {"Cc", "Cf", "Co", "Cs"}
_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)


class WordPiece:
    """Greedy longest-match tokeniser over a vocabulary, with the commonest words remembered.

    >>> WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "play", "##ing"], max_tokens=8).ids("Playing")
    [2, 4, 5, 3]
    """

    def __init__(self, vocabulary: Sequence[str], *, max_tokens: int) -> None:
        self._id = {piece: number for number, piece in enumerate(vocabulary)}
        self._unknown = self._id["[UNK]"]
        self._first, self._last = self._id["[CLS]"], self._id["[SEP]"]
        self._room = max_tokens - 2
        self._remembered = lru_cache(maxsize=REMEMBERED)(self._pieces)

    def ids(self, text: str) -> list[int]:
        """Token ids with the markers at both ends, at most `max_tokens`."""
        found: list[int] = []
        for chunk in _CHUNK.finditer(_FALSE_SPACES.sub("", text[:READ_CHARACTERS])):
            look_up = self._remembered if chunk.end() - chunk.start() <= LONGEST_REMEMBERED else self._pieces
            found += look_up(chunk.group())
            if len(found) >= self._room:
                break
        return [self._first, *found[: self._room], self._last]

    def _pieces(self, chunk: str) -> tuple[int, ...]:
        return tuple(piece for word in words(chunk) for piece in self._split(word))

    def _split(self, word: str) -> list[int]:
        if len(word) > LONGEST_WORD:
            return [self._unknown]
        pieces: list[int] = []
        start = 0
        while start < len(word):
            end = self._longest(word, start)
            if end == start:
                return [self._unknown]
            pieces.append(self._id[_piece(word, start, end)])
            start = end
        return pieces

    def _longest(self, word: str, start: int) -> int:
        for end in range(len(word), start, -1):
            if _piece(word, start, end) in self._id:
                return end
        return start


def words(text: str) -> Iterator[str]:
    """Normalised words of a text; every punctuation mark and ideograph is a word of its own."""
    if not text.isascii():
        text = _without_accents(_cleaned(text))
    elif not text.isprintable():
        text = _cleaned(text)
    word = ""
    for character in text.lower():
        if character.isalnum() and not _is_ideograph(character):
            word += character
        elif character.isspace() or _stands_alone(character):
            if word:
                yield word
            if not character.isspace():
                yield character
            word = ""
        else:
            word += character
    if word:
        yield word


def _cleaned(text: str) -> str:
    return "".join(character for character in text if not _is_dropped(character))


def _without_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFD", text)
    bare = "".join(character for character in decomposed if unicodedata.category(character) != "Mn")
    return bare.replace("Σ", "σ")  # lower() would write a final sigma, the reference does not


def _is_dropped(character: str) -> bool:
    return character == "\ufffd" or unicodedata.category(character) in _DROPPED


def _stands_alone(character: str) -> bool:
    if character.isascii():
        return character.isprintable() and not character.isalnum()
    return _is_ideograph(character) or unicodedata.category(character)[0] == "P"


def _is_ideograph(character: str) -> bool:
    return character >= "\u3400" and any(low <= ord(character) <= high for low, high in _IDEOGRAPHS)


def _piece(word: str, start: int, end: int) -> str:
    return f"##{word[start:end]}" if start else word[start:end]
