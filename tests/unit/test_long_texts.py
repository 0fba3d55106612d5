"""What reads a caller's texts is done soon, however long they are and whatever they repeat."""

import time
from collections.abc import Callable

import pytest

from reflexio.language.contradiction import contradicts, instruction_replacement, replacement
from reflexio.language.identify import language_of
from reflexio.language.standing import fact_holds_always, instruction_holds_always
from reflexio.language.words import content_words
from reflexio.learners.local.learner import _apply_rules
from reflexio.learners.local.summarising import private_details
from reflexio.learning.quotation import comparable, find_pieces, pieces_of
from reflexio.models.extraction import Turn
from reflexio.models.learning import Kind, Learning
from reflexio.models.wording import cut_at_sentence, without_hidden
from reflexio.retrieval.context import compose
from reflexio.retrieval.query import without_names

LENGTH = 100_000
LIMIT = 1.0
"""Seconds of processor time: ten times what the slowest of them takes, a tenth of what reading again and again took."""
UNITS = (
    *(" ", "\n", "a", "(", "1", "1,", "<", '"', "-", "a.", "a. ", "a b c d ", "the user ", "please ", "never a. "),
    *("do not x. ", "Do x and y. ", "if a b, ", "I am a b. ", "I live in a and ", "A b ", "x y before z. "),
    *("\u200b", "x\u200b", "我", "é"),
)
FUNCTIONS: dict[str, Callable[[str, str], object]] = {
    "contradiction": contradicts,
    "replaced facts": lambda one, other: replacement(one, other, 0.9),
    "replaced instructions": lambda one, other: instruction_replacement(one, other, 0.9),
    "standing facts": lambda one, _: fact_holds_always(one),
    "standing instructions": instruction_holds_always,
    "words": lambda one, _: content_words(one),
    "language": lambda one, _: language_of(one),
    "rules": lambda one, other: _apply_rules([Turn(1, "user", one), Turn(2, "agent", one), Turn(3, "user", other)]),
    "summarising": lambda one, other: private_details([one, other]),
    "evidence": lambda one, other: find_pieces(pieces_of(one[:1000]), comparable(other)),
    "hidden characters": lambda one, _: without_hidden(one),
    "cut": lambda one, _: cut_at_sentence(one, 2_000),
    "names": lambda one, _: without_names(one),
    "context": lambda one, other: compose(
        [],
        1_000,
        query=one,
        always=[Learning(Kind.PROFILE, one, id=1), Learning(Kind.USER_PLAYBOOK, other, trigger=one, id=2)],
        always_tokens=900,
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_long_text_is_read_soon(name: str) -> None:
    FUNCTIONS[name]("Be brief.", "Do not be brief.")  # compiles the patterns
    slow = []
    for unit in UNITS:
        one, other = f"{unit * LENGTH}"[: LENGTH - 8] + " be so.", f"{unit * LENGTH}"[: LENGTH - 12] + " be not so."
        begun = time.process_time()
        FUNCTIONS[name](one, other)
        if (seconds := time.process_time() - begun) > LIMIT:
            slow.append(f"{unit!r}: {seconds:.2f} s")
    assert not slow
