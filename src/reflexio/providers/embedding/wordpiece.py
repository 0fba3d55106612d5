"""Text to the token ids of an uncased BERT model: clean, lower-case, strip accents, split, look up.

The ids are those of the reference tokeniser, with two intended differences: a special token written out in a text
("[SEP]") is ordinary text, so that no text can steer the model, and only the first `READ_CHARACTERS` are read, so that
a text of a megabyte costs no more than a long one.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

READ_CHARACTERS = 32_768  # 254 pieces of at most 100 characters and a space each fit
MAX_WORD_CHARACTERS = 100  # longer ones are unknown, as in the reference
MAX_CACHED_CHARACTERS = 64
CACHE_SIZE = 32_768

# Python treats these control characters as white space; the reference drops them.
_FALSE_SPACES = re.compile("[\x0b\x0c\x1c-\x1f\x85]")
_CHUNK = re.compile(r"\S+")
# Unassigned characters stay and become unknown words, so that a newer Unicode table changes nothing here.
_DROPPED = {"Cc", "Cf", "Co", "Cs"}
_IDEOGRAPH = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f]"
)


class WordPiece:
    """Greedy longest-match tokeniser over a vocabulary, with a cache of recent words.

    >>> WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "play", "##ing"], max_tokens=8).ids("Playing")
    [2, 4, 5, 3]
    """

    def __init__(self, vocabulary: Sequence[str], *, max_tokens: int) -> None:
        self._id = {piece: number for number, piece in enumerate(vocabulary)}
        self._unknown = self._id["[UNK]"]
        self._first, self._last = self._id["[CLS]"], self._id["[SEP]"]
        self._room = max_tokens - 2
        self._cached_ids = lru_cache(maxsize=CACHE_SIZE)(self._chunk_ids)

    def ids(self, text: str) -> list[int]:
        """Token ids with the markers at both ends, at most `max_tokens`."""
        ids: list[int] = []
        for chunk in _CHUNK.finditer(_FALSE_SPACES.sub("", text[:READ_CHARACTERS])):
            look_up = self._cached_ids if chunk.end() - chunk.start() <= MAX_CACHED_CHARACTERS else self._chunk_ids
            ids += look_up(chunk.group())
            if len(ids) >= self._room:
                break
        return [self._first, *ids[: self._room], self._last]

    def forget(self) -> None:
        """Drops the cached words."""
        self._cached_ids.cache_clear()

    def _chunk_ids(self, chunk: str) -> tuple[int, ...]:
        return tuple(number for word in words(chunk) for number in self._word_ids(word))

    def _word_ids(self, word: str) -> list[int]:
        if len(word) > MAX_WORD_CHARACTERS:
            return [self._unknown]
        ids: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = f"##{word[start:end]}" if start else word[:end]
                if piece in self._id:
                    break
            else:
                return [self._unknown]
            ids.append(self._id[piece])
            start = end
        return ids


def words(text: str) -> Iterator[str]:
    """Normalised words of a text; every punctuation mark and ideograph is a separate word."""
    if not text.isascii():
        text = _strip_accents(_clean(text))
    elif not text.isprintable():
        text = _clean(text)
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


def _clean(text: str) -> str:
    kept = (character for character in text if unicodedata.category(character) not in _DROPPED)
    return "".join(kept).replace("\ufffd", "")


def _strip_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFD", text)
    bare = "".join(character for character in decomposed if unicodedata.category(character) != "Mn")
    return bare.replace("Σ", "σ")  # lower() would write a final sigma, the reference does not


def _stands_alone(character: str) -> bool:
    if character.isascii():
        return character.isprintable() and not character.isalnum()
    return _is_ideograph(character) or unicodedata.category(character)[0] == "P"


def _is_ideograph(character: str) -> bool:
    return character >= "\u3400" and _IDEOGRAPH.match(character) is not None
