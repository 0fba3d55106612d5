"""Which lessons say the same, and which have done more harm than good."""

import re

from reflexio.agents.values import Lesson

SAME_WORDS, SAME_OCCASION = 0.7, 0.92
"""Share of common words, and cosine of trigger and lesson together, from which a lesson repeats another."""
LEAST_TRIED = 5
_WORD = re.compile(r"\w+")


def key(lesson: Lesson) -> str:
    """What a lesson is found by. The task that taught it says more about the next one like it than the advice does."""
    return f"{lesson.trigger}\n{lesson.content}" if lesson.trigger else lesson.content


def repeats(lesson: Lesson, known: Lesson, similarity: float | None) -> bool:
    """Whether it says what is known, on the same occasion.

    The cosine alone would merge all lessons of one task, since the task is most of what is compared; the words
    alone would merge those of two tasks that are told in one form.
    """
    same_occasion = lesson.trigger == known.trigger or (similarity or 0.0) >= SAME_OCCASION
    return same_occasion and _shared(lesson.content, known.content) >= SAME_WORDS


def is_retired(helped: int, hurt: int) -> bool:
    """Tried often enough to know, and hurt more often than it helped."""
    return helped + hurt >= LEAST_TRIED and hurt > helped


def _shared(one: str, other: str) -> float:
    mine, theirs = (set(_WORD.findall(text.lower())) for text in (one, other))
    if not mine or not theirs:
        return float(one.strip() == other.strip())
    return len(mine & theirs) / len(mine | theirs)
