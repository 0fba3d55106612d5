"""From a turn to the sentences in which its speaker speaks for themselves.

Quotations are masked: code, block quotes, quotation marks, the text handed over to be translated or corrected. So is
everything after an attempt to instruct the learner. Offsets stay, so that evidence is verbatim.
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from reflexio.language.words import CueFile
from reflexio.learners.local.spelling import spelled
from reflexio.models.extraction import Quote, Turn

MOST_READ = 6_000  # characters of a turn; what is longer was pasted
LONGEST_SENTENCE = 400
MASK = "\x1a"
CUES = CueFile(Path(__file__).with_name("cues.toml"))  # of all rules of the learner

_QUOTATION = re.compile(
    r"```.*?(?:```|\Z)"  # code
    r"|`[^`\n]*`"
    r"|^[ \t]*>.*$"  # a reply that quotes
    r'|"[^"\n]{1,600}"|“[^”\n]{1,600}”|«[^»\n]{1,600}»|„[^“”\n]{1,600}[“”]',
    re.S | re.M,
)
_BACKTICKED = re.compile(r"`[^`\n]{1,80}`")
_END = re.compile(r"(?:(?<![A-Z\d])[.]|(?<=\d)[.](?=\s++[A-Z])|(?<![!?])[!?]++|(?<![.])[.]{2,}+|…)[)\"'”’]*+(?=\s)|\n+")
_LIST_MARK = re.compile(r"^(?:[-*•–]|\(?\d{1,2}[.)])\s+")


@cache
def cue_pairs(name: str) -> list[tuple[re.Pattern[str], str]]:
    """Patterns, and the words that belong to each."""
    return [(CUES.compile(pattern), words) for pattern, words in CUES.data["pairs"][name]]


class Sentence(NamedTuple):
    """Words of a turn, in the usual spelling. `own` is the same text with quotations masked, letter for letter;
    `verbatim` are the words as they were typed."""

    turn: Turn
    text: str
    own: str
    verbatim: str

    @property
    def is_question(self) -> bool:
        return self.text.rstrip(" \"'”)").endswith("?")


def own_sentences(turn: Turn) -> list[Sentence]:
    """What the speaker of a turn says in their own words, sentence by sentence."""
    return [Sentence(turn, *texts) for texts in _split_own_speech(turn.content[:MOST_READ])]


def typed_sentences(turn: Turn) -> list[Sentence]:
    """`own_sentences` as they were typed: the usual spelling is that of English."""
    return [
        sentence if MASK in sentence.own else Sentence(turn, sentence.verbatim, sentence.verbatim, sentence.verbatim)
        for sentence in own_sentences(turn)
    ]


def quotes(*sentences: Sentence | None) -> tuple[Quote, ...]:
    """The sentences as evidence, each once."""
    return tuple(dict.fromkeys(Quote(sentence.turn.id, sentence.verbatim) for sentence in sentences if sentence))


def split_sentences(text: str) -> list[str]:
    """The sentences, list items and lines of any text, quotations included."""
    return [text[start:end] for start, end in sentence_spans(text[:MOST_READ])]


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for mark in _END.finditer(text):
        if not CUES["abbreviation"].search(text, max(start, mark.end() - 8), mark.end()):
            yield from _trimmed_span(text, start, mark.end())
            start = mark.end()
    yield from _trimmed_span(text, start, len(text))


def _trimmed_span(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    end -= len(piece) - len(piece.rstrip())
    if mark := _LIST_MARK.match(text[start:end]):
        start += mark.end()
    if start < end:
        yield start, end


@lru_cache(maxsize=512)  # every rule reads the same turns
def _split_own_speech(text: str) -> tuple[tuple[str, str, str], ...]:
    own = _QUOTATION.sub(_mask, text)
    for foreign in (CUES["injection"].search(own), CUES["handed_over"].search(own)):
        if foreign:
            own = own[: foreign.start()] + MASK * (len(own) - foreign.start())
    return tuple(
        _in_usual_spelling(text[start:end], own[start:end])
        for start, end in sentence_spans(own)
        if own[start:end].strip(MASK + " ") and end - start <= LONGEST_SENTENCE
    )


def _in_usual_spelling(verbatim: str, own: str) -> tuple[str, str, str]:
    """Text, own words and verbatim. Beside a quotation the spelling stays, so that masks and letters match."""
    if MASK in own:
        return verbatim, own, verbatim
    text = spelled(verbatim)
    return text, text, verbatim


def _mask(quotation: re.Match[str]) -> str:
    """A name in backticks or a word in quotes is part of the sentence; more than that is somebody else's words."""
    text = quotation.group()
    if _BACKTICKED.fullmatch(text) or (text[0] in '"“«„' and len(text.split()) <= 3):
        return text
    return re.sub(r"[^\n]", MASK, text)
