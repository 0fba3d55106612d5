"""What may be known of one person only: names, numbers and addresses. What several members share is common.

Names are told by their capitals. In German every noun has one, and only numbers and addresses are told.
"""

import re
from collections import Counter
from collections.abc import Iterable

from reflexio.learners.local.sentences import MOST_READ, spans

# Bounded: a word of a megabyte must not be read again from each of its letters.
ADDRESS = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}|\bhttps?://\S+|\bwww\.\S+", re.I)
NUMBER = re.compile(r"[#№]?\+?\d(?:[\d.,:/ -]{0,30}\d)?")
WORD = re.compile(r"[^\W\d_][\w'’-]*")
NAME = re.compile(r"[A-ZÀ-ÖØ-ÞĀ-Ž][\w'’-]+")
GERMAN = re.compile(
    r"\b(?:der|die|das|den|dem|des|eine?[nmrs]?|und|oder|nicht|ist|sind|bei|mit|für|zum|zur|wenn|auf|im|ich)\b", re.I
)
MANY = 0.15
GONE = "…"


def unshared(texts: Iterable[str]) -> frozenset[str]:
    """The details that only one of the texts has."""
    held = [each[:MOST_READ] for each in texts]
    with_names = not _is_german(" ".join(held))
    counted = Counter(detail for text in held for detail in details(text, with_names=with_names))
    words = [{word.lower() for word in WORD.findall(text)} for text in held]
    return frozenset(
        detail for detail, count in counted.items() if count == 1 and sum(detail in said for said in words) < 2
    )


def details(text: str, *, with_names: bool = True) -> set[str]:
    text = text[:MOST_READ]
    found = {match.lower() for match in ADDRESS.findall(text)}
    rest = ADDRESS.sub(" ", text)
    found |= {_digits(match) for match in NUMBER.findall(rest)}
    if with_names:
        found |= {name.lower() for start, end in spans(rest) for name in _names(rest[start:end])}
    return found


def _names(sentence: str) -> list[str]:
    """Capitalised words that do not begin the sentence."""
    first = WORD.search(sentence)
    return [found.group() for found in NAME.finditer(sentence, first.end() if first else 0)]


def _digits(number: str) -> str:
    return re.sub(r"\D", "", number)


def _is_german(text: str) -> bool:
    return len(GERMAN.findall(text)) > MANY * len(WORD.findall(text))


def is_private(text: str, private: frozenset[str]) -> bool:
    return bool(details(text) & private) or any(word.lower() in private for word in NAME.findall(text))


def without(text: str, private: frozenset[str]) -> str:
    """The text with its private details left out."""

    def hidden(found: re.Match[str]) -> str:
        return GONE if found.group().lower() in private or _digits(found.group()) in private - {""} else found.group()

    for kind in (ADDRESS, NUMBER, NAME):
        text = kind.sub(hidden, text)
    return re.sub(rf"{GONE}(?:[\s,]+{GONE})+", GONE, text)
