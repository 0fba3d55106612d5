"""From a turn to the sentences in which its speaker speaks for themselves, and from the first person to the third.

Quotations are masked: code, block quotes, quotation marks, the text handed over to be translated or corrected. So is
everything after an attempt to instruct the learner. Offsets stay, so that evidence is verbatim.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from reflexio.language.words import CueFile
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
_END = re.compile(r"(?:(?<![A-Z\d])[.]|(?<=\d)[.](?=\s+[A-Z])|[!?]+|[.]{2,}|…)[)\"'”’]*(?=\s)|\n+")
_LIST_MARK = re.compile(r"^(?:[-*•–]|\(?\d{1,2}[.)])\s+")

_IRREGULAR = {"am": "is", "have": "has", "do": "does", "don't": "doesn't", "haven't": "hasn't", "ain't": "isn't"}
_TRAILING = re.compile(r",?\s+(?:though|actually|anyway|tbh|lol|as well)$", re.I)


@cache
def cue_pairs(name: str) -> list[tuple[re.Pattern[str], str]]:
    """Patterns, and the words that belong to each."""
    return [(CUES.compile(pattern), words) for pattern, words in CUES.data["pairs"][name]]


@cache
def _substitutions(name: str) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(rf"\b{words}\b"), instead) for words, instead in CUES.data["substitutions"][name]]


@dataclass(frozen=True)
class Sentence:
    """Words of a turn as they stand there. `own` is the same text with quotations masked, letter for letter."""

    turn: Turn
    text: str
    own: str

    @property
    def is_question(self) -> bool:
        return self.text.rstrip(" \"'”)").endswith("?")


def own_sentences(turn: Turn) -> list[Sentence]:
    """What the speaker of a turn says in their own words, sentence by sentence."""
    return [Sentence(turn, text, own) for text, own in _split_own_speech(turn.content[:MOST_READ])]


def quotes(*sentences: Sentence | None) -> tuple[Quote, ...]:
    """The sentences as evidence, each once."""
    return tuple(dict.fromkeys(Quote(sentence.turn.id, sentence.text) for sentence in sentences if sentence))


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
def _split_own_speech(text: str) -> tuple[tuple[str, str], ...]:
    own = _QUOTATION.sub(_mask, text)
    for foreign in (CUES["injection"].search(own), CUES["handed_over"].search(own)):
        if foreign:
            own = own[: foreign.start()] + MASK * (len(own) - foreign.start())
    return tuple(
        (text[start:end], own[start:end])
        for start, end in sentence_spans(own)
        if own[start:end].strip(MASK + " ") and end - start <= LONGEST_SENTENCE
    )


def _mask(quotation: re.Match[str]) -> str:
    """A name in backticks or a word in quotes is part of the sentence; more than that is somebody else's words."""
    text = quotation.group()
    if _BACKTICKED.fullmatch(text) or (text[0] in '"“«„' and len(text.split()) <= 3):
        return text
    return re.sub(r"[^\n]", MASK, text)


def in_third_person(clause: str) -> str:
    """A first-person clause as a sentence about the user: "I'm vegetarian" becomes "The user is vegetarian."."""
    text = _without_contractions(clause).strip(" ,;:-–—")
    if subject := re.match(r"I\s+", text):
        return _as_sentence(f"The user {third_person_pronouns(_conjugated(text[subject.end() :]))}")
    if subject := re.match(r"(?:my|our)\s+", text, re.I):
        return _as_sentence(f"The user's {third_person_pronouns(text[subject.end() :])}")
    if re.match(r"(?:can't|not (?:really )?(?:a|into))\b", text):
        return in_third_person(f"I {'am ' if text.startswith('not') else ''}{text}")
    return as_instruction(text)


def third_person_pronouns(text: str) -> str:
    """Only the pronouns changed: "reset my password" becomes "reset their password"."""
    return _substitute(_without_contractions(text), "third_person").strip()


def as_instruction(clause: str) -> str:
    """An order as an instruction that anybody can read: "call me Bo" becomes "Call the user Bo."."""
    text = _substitute(_without_contractions(clause).strip(" ,;:-–—"), "to_the_agent")
    text = re.sub(r"\bthe user (want|need|prefer|ask|say|like|have)\b", r"the user \1s", text).replace("haves", "has")
    return _as_sentence(text)


def _without_contractions(clause: str) -> str:
    return _substitute(re.sub(r"(?<![\w.])i(?=['’ ]|$)", "I", clause).replace("’", "'"), "contractions")


def _substitute(text: str, name: str) -> str:
    for pattern, replacement in _substitutions(name):
        text = pattern.sub(replacement, text)
    return text


def _conjugated(predicate: str) -> str:
    """The first verb in the third person, and those joined to it that are plainly verbs."""
    before = ""
    while adverb := CUES["adverb"].match(predicate):
        before += predicate[: adverb.end()] + " "
        predicate = predicate[adverb.end() :].lstrip()
    verb, space, rest = predicate.partition(" ")
    rest = CUES["joined_verb"].sub(lambda join: join[1] + _conjugated_verb(join[2]), rest)
    return before + _conjugated_verb(verb) + space + rest


def _conjugated_verb(verb: str) -> str:
    plain = verb.lower()
    if plain in _IRREGULAR:
        return _IRREGULAR[plain]
    is_past = plain.endswith("ed") and not plain.endswith(("eed", "shed", "embed"))
    if plain in CUES.lists["same_in_third_person"] or is_past or plain.endswith("n't") or not plain.isalpha():
        return verb
    if plain.endswith(("s", "x", "z", "ch", "sh", "o")):
        return verb + "es"
    return verb[:-1] + "ies" if re.search(r"[^aeiou]y$", plain) else verb + "s"


def _as_sentence(text: str) -> str:
    text = _TRAILING.sub("", re.sub(r"\s+", " ", text).strip(" ,;:-–—!"))
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "…", "”")) else text + "."
