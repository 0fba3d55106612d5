"""Word-level differences of two texts, in bounded time: long texts are compared sentence by sentence, and only the
sentences that differ word by word."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

from markupsafe import Markup

MOST_PAIRS = 160_000
"""Units of one text times units of the other that are compared: 50 ms at worst."""
LEAST_ALIKE = 0.3
"""Below this share of common words, a text is shown as replaced: scattered words that happen to match help nobody."""
CHINESE_OR_JAPANESE = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"\s+|[{CHINESE_OR_JAPANESE}]|[^\W{CHINESE_OR_JAPANESE}]+|[^\w\s]")
"""Spaces, a Chinese or Japanese character, a word, or another sign."""
STOPS, WIDE_STOPS = frozenset(".!?"), frozenset("。！？")

Change = Literal["same", "removed", "added"]


@dataclass(frozen=True)
class DiffPart:
    """A stretch of text that both texts have, that only the old one has, or that only the new one has."""

    change: Change
    text: str


def word_diff(old: str, new: str) -> list[DiffPart]:
    """The parts in reading order. Those that are not `added` are the old text, those not `removed` the new one.

    >>> [(part.change, part.text) for part in word_diff("Ask for the number.", "Ask for the order number.")]
    [('same', 'Ask for the '), ('added', 'order '), ('same', 'number.')]
    """
    before, after = WORD.findall(old), WORD.findall(new)
    first, last = _common_ends(before, after)
    middle = _changes(before[first : len(before) - last], after[first : len(after) - last])
    parts = [
        DiffPart("same", "".join(before[:first])),
        *middle,
        DiffPart("same", "".join(before[len(before) - last :])),
    ]
    return list(_join(_without_islands(list(_join(parts)))))


def mark_changes(old: str, new: str) -> Markup:
    """Both texts in one, with `<del>` and `<ins>`."""
    return Markup("").join(map(_mark, word_diff(old, new)))


def mark_removed(old: str, new: str) -> Markup:
    """The old text with `<del>`, for a reader who sees both texts beside each other."""
    return Markup("").join(_mark(part) for part in word_diff(old, new) if part.change != "added")


def mark_added(old: str, new: str) -> Markup:
    """The new text with `<ins>`."""
    return Markup("").join(_mark(part) for part in word_diff(old, new) if part.change != "removed")


def _mark(part: DiffPart) -> Markup:
    match part.change:
        case "same":
            return Markup.escape(part.text)
        case "removed":
            return Markup("<del>{}</del>").format(part.text)
        case "added":
            return Markup("<ins>{}</ins>").format(part.text)


def _common_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many units at the beginning and at the end are the same."""
    most = min(len(old), len(new))
    first = next((at for at in range(most) if old[at] != new[at]), most)
    last = next((at for at in range(most - first) if old[-1 - at] != new[-1 - at]), most - first)
    return first, last


def _changes(old: Sequence[str], new: Sequence[str]) -> Iterable[DiffPart]:
    if len(old) * len(new) <= MOST_PAIRS:
        return _match_words(old, new)
    old_sentences, new_sentences = _sentences(old), _sentences(new)
    if len(old_sentences) * len(new_sentences) > MOST_PAIRS:
        return _replaced(old, new)
    return _match_sentences(old_sentences, new_sentences)


def _match_words(old: Sequence[str], new: Sequence[str]) -> Iterable[DiffPart]:
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    parts = [
        part
        for tag, i, j, k, m in matcher.get_opcodes()
        for part in ([DiffPart("same", "".join(old[i:j]))] if tag == "equal" else _replaced(old[i:j], new[k:m]))
    ]
    words = max(sum(map(_is_word, old)), sum(map(_is_word, new)))
    common = sum(_is_word(word) for part in parts if part.change == "same" for word in WORD.findall(part.text))
    return parts if common >= LEAST_ALIKE * words else _replaced(old, new)


def _match_sentences(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffPart]:
    left = MOST_PAIRS
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            yield DiffPart("same", "".join(old[i:j]))
            continue
        before, after = WORD.findall("".join(old[i:j])), WORD.findall("".join(new[k:m]))
        pairs = len(before) * len(after)
        yield from _match_words(before, after) if pairs <= left else _replaced(before, after)
        left -= min(pairs, left)


def _replaced(old: Sequence[str], new: Sequence[str]) -> list[DiffPart]:
    return [DiffPart("removed", "".join(old)), DiffPart("added", "".join(new))]


def _sentences(words: Sequence[str]) -> list[str]:
    sentences, begun = list[str](), list[str]()
    for word, following in zip(words, [*words[1:], ""], strict=True):
        begun.append(word)
        is_end = (word.isspace() and (STOPS.intersection(begun[-2:-1]) or "\n" in word)) or word in WIDE_STOPS
        if is_end and not (word in WIDE_STOPS and following.isspace()):
            sentences.append("".join(begun))
            begun = []
    return [*sentences, "".join(begun)] if begun else sentences


def _without_islands(parts: Sequence[DiffPart]) -> Iterator[DiffPart]:
    """A space or a sign that stands alone between two changes belongs to both: it is quieter to read."""
    for at, part in enumerate(parts):
        is_between = 0 < at < len(parts) - 1 and "same" not in (parts[at - 1].change, parts[at + 1].change)
        if part.change == "same" and is_between and not any(map(_is_word, WORD.findall(part.text))):
            yield from (DiffPart("removed", part.text), DiffPart("added", part.text))
        else:
            yield part


def _join(parts: Iterable[DiffPart]) -> Iterator[DiffPart]:
    """Neighbours of one kind as one part, between two common parts first what is gone and then what is new."""
    for is_same, group in groupby((part for part in parts if part.text), lambda part: part.change == "same"):
        texts: dict[Change, str] = {}
        for part in group:
            texts[part.change] = texts.get(part.change, "") + part.text
        order: tuple[Change, ...] = ("same",) if is_same else ("removed", "added")
        yield from (DiffPart(change, texts[change]) for change in order if change in texts)


def _is_word(word: str) -> bool:
    return not word.isspace() and (len(word) > 1 or word.isalnum())
