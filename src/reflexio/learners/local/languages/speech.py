"""What the user says in their own words in another language, sentence by sentence and clause by clause."""

import re
from dataclasses import dataclass
from functools import cached_property

from reflexio.language.cues import LanguageCues, folded
from reflexio.learners.local.sentences import MASK, Sentence, typed_sentences
from reflexio.models.extraction import Turn

_END = re.compile(r"[。！？；!?]+[”’」』）)]*")
_QUESTION = re.compile(r"[?？][\s\"'”»)」』]*$")
_CARD = re.compile(r"\d(?:[ -]?\d){10,}")
_LONG_NUMBER = re.compile(r"#?\w*\d[\w-]{2,}")


@dataclass(frozen=True)
class Spoken:
    """A sentence, and the same letter for letter as patterns are looked for in it."""

    sentence: Sentence
    cues: LanguageCues

    @cached_property
    def plain(self) -> str:
        return folded(self.sentence.own)

    @cached_property
    def is_question(self) -> bool:
        return bool(_QUESTION.search(self.sentence.text) or self.cues["question"].search(self.plain))

    @property
    def is_masked(self) -> bool:
        """Somebody else's words, or a number that nobody wants to be stored."""
        return MASK in self.sentence.own or bool(_CARD.search(self.sentence.text))

    def rest(self, start: int) -> str:
        return self.sentence.text[start:].strip(" ,;:-–—，、；：")


def spoken_sentences(turn: Turn, cues: LanguageCues) -> list[Spoken]:
    """The sentences of a turn, up to where a text of somebody else is handed over."""
    spoken: list[Spoken] = []
    for sentence in typed_sentences(turn):
        for piece in _pieces(sentence) if cues.language == "zh" else (sentence,):
            words = Spoken(piece, cues)
            if cues["handed_over"].search(words.plain) or cues["injection"].search(words.plain):
                return spoken
            spoken.append(words)
    return spoken


def _pieces(sentence: Sentence) -> list[Sentence]:
    """Chinese sentences follow each other without a blank."""
    pieces, start = [], 0
    for end in [*(mark.end() for mark in _END.finditer(sentence.own)), len(sentence.own)]:
        text = sentence.text[start:end]
        if text.strip():
            left = start + len(text) - len(text.lstrip())
            right = left + len(text.strip())
            words = sentence.text[left:right]
            pieces.append(Sentence(sentence.turn, words, sentence.own[left:right], words))
        start = end
    return pieces


def as_statement(text: str) -> str:
    """Words as a sentence of their own."""
    text = " ".join(text.split()).strip(" ,;:-–—，、；：")
    text = text[:1].upper() + text[1:]
    if not text or text[-1] in ".!?…。！？”»」":
        return text
    return text + ("。" if re.search(r"[\u3400-\u9fff]\W*$", text) else ".")


def without_case(text: str) -> str:
    """Numbers and ids belong to one case, not to a rule."""
    return _LONG_NUMBER.sub("…", text)
