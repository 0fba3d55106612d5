"""From a turn to the sentences in which its speaker speaks for themselves.

What only quotes is masked: code, block quotes, quotation marks, the text handed over to be translated or
corrected. So is everything from an attempt to instruct the learner on. Offsets stay, so evidence is verbatim.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from reflexio.models.learned import Turn

MOST_READ = 6_000  # characters of a turn; what is longer was pasted
LONGEST_SENTENCE = 400
MASK = "\x1a"

_QUOTED = re.compile(
    r"```.*?(?:```|\Z)"  # code
    r"|`[^`\n]*`"
    r"|^[ \t]*>.*$"  # a reply that quotes
    r'|"[^"\n]{1,600}"|“[^”\n]{1,600}”|«[^»\n]{1,600}»|„[^“”\n]{1,600}[“”]',
    re.S | re.M,
)
_BACKTICKED = re.compile(r"`[^`\n]{1,80}`")
_HANDED_OVER = re.compile(
    r"\b(?:translate|summari[sz]e|proofread|rewrite|rephrase|paraphrase|edit|improve|polish|shorten|correct|"
    r"classify|analy[sz]e|reply to|respond to|comment on|explain|fix|übersetze?|traduce|traduis|here(?:'|’)?s|here is|"
    r"here are|this is|says?|said|wrote|writes|reads?|email|message|letter|text|review|post|lyrics?|poem|transcript|"
    r"log)\b[^:\n.?!]{0,80}:(?=\s)",
    re.I,
)
_INJECTED = re.compile(
    r"\b(?:ignore|disregard|override)\b[^.\n]{0,40}\b(?:above|previous|prior|earlier|preceding|all|any|your)\b"
    r"[^.\n]{0,40}\b(?:instructions?|rules?|prompts?|messages?|and (?:store|save|remember|learn|record|write|output|"
    r"print|add|note))\b|\b(?:store|save|record|add|write|insert)\b[^.\n]{0,40}\b(?:playbooks?|memory|memories|"
    r"learnings?|user profiles?)\b|\bsystem (?:prompt|message|override)\b|\b(?:you are|"
    r"act as) (?:now )?(?:in )?(?:DAN|developer mode|jailbr\w+)\b|</?(?:system|instructions?|assistant|tool)>|"
    r"\[/?(?:INST|SYSTEM)\]",
    re.I,
)
_END = re.compile(r"(?:(?<![A-Z\d])[.]|(?<=\d)[.](?=\s+[A-Z])|[!?]+|[.]{2,}|…)[)\"'”’]*(?=\s)|\n+")
_ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|etc|vs|Mr|Mrs|Ms|Dr|Prof|St|No|approx|bzw|z\.B|p\.ej)\.$", re.I)
_LIST_MARK = re.compile(r"^(?:[-*•–]|\(?\d{1,2}[.)])\s+")


@dataclass(frozen=True)
class Sentence:
    """Words of a turn as they stand there. `own` is the same with quotations masked, letter for letter."""

    turn: Turn
    text: str
    own: str

    @property
    def is_question(self) -> bool:
        return self.text.rstrip(" \"'”)").endswith("?")


def spoken(turn: Turn) -> list[Sentence]:
    """What the speaker of a turn says in their own words, sentence by sentence."""
    return [Sentence(turn, text, own) for text, own in _split_speech(turn.content[:MOST_READ])]


def split(text: str) -> list[str]:
    """The sentences, list items and lines of a text that is nobody's own speech, quotations included."""
    return [text[start:end] for start, end in spans(text[:MOST_READ])]


def spans(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for mark in _END.finditer(text):
        if not _ABBREVIATED.search(text, max(start, mark.end() - 8), mark.end()):
            yield from _trimmed(text, start, mark.end())
            start = mark.end()
    yield from _trimmed(text, start, len(text))


@lru_cache(maxsize=512)  # every rule reads the same turns
def _split_speech(text: str) -> tuple[tuple[str, str], ...]:
    own = _masked(text)
    return tuple(
        (text[start:end], own[start:end])
        for start, end in spans(own)
        if own[start:end].strip(MASK + " ") and end - start <= LONGEST_SENTENCE
    )


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    end -= len(piece) - len(piece.rstrip())
    if mark := _LIST_MARK.match(text[start:end]):
        start += mark.end()
    if start < end:
        yield start, end


def _masked(text: str) -> str:
    masked = _QUOTED.sub(_mask, text)
    for cut in (_INJECTED.search(masked), _HANDED_OVER.search(masked)):
        if cut:
            masked = masked[: cut.start()] + MASK * (len(masked) - cut.start())
    return masked


def _mask(found: re.Match[str]) -> str:
    """A name in backticks or a word in quotes is part of what is said; more than that is somebody else's words."""
    words = found.group()
    if _BACKTICKED.fullmatch(words) or (words[0] in '"“«„' and len(words.split()) <= 3):
        return words
    return re.sub(r"[^\n]", MASK, words)
