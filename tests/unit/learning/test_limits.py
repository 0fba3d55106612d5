"""How much one window may teach, and what becomes of texts that are too long."""

from typing import Any

from reflexio.learning.consolidate import scope_after
from reflexio.learning.limits import MOST_LEARNINGS, limited_decision, within_limits
from reflexio.models.extraction import Decision, ExtractedLearning, Quote
from reflexio.models.learning import Kind, Learning, Scope
from reflexio.models.wording import LONGEST_CONTENT, LONGEST_METADATA, LONGEST_QUOTE, LONGEST_RATIONALE, MOST_QUOTES

SENTENCE = "Check the address twice before you send it. "


def learning(content: str = "Check it.", **more: Any) -> ExtractedLearning:
    return ExtractedLearning(Kind.USER_PLAYBOOK, "x", content, **more)


def test_a_long_content_is_cut_at_a_sentence_and_counted() -> None:
    limited = within_limits([learning(SENTENCE * 200), learning()], 1)
    [long, short] = limited.candidates
    assert len(long.content) <= LONGEST_CONTENT
    assert long.content.endswith("send it.")
    assert short == learning()
    assert (limited.shortened, limited.refused) == (1, 0)


def test_a_content_or_a_trigger_without_a_sentence_that_fits_is_refused_and_counted() -> None:
    limited = within_limits([learning("x" * 5_000), learning(trigger="x " * 5_000), learning("\u200b"), learning()], 1)
    assert (limited.candidates, limited.refused) == ((learning(),), 3)


def test_all_other_fields_have_limits() -> None:
    quotes = tuple(Quote(number, "y" * 9_000) for number in range(30))
    big = learning(rationale=SENTENCE * 99, evidence=quotes, metadata={"a": "x" * 9_000})
    [kept] = within_limits([big], 1).candidates
    assert len(kept.rationale) <= LONGEST_RATIONALE
    assert len(kept.evidence) == MOST_QUOTES
    assert len(kept.evidence[0].text) == LONGEST_QUOTE
    assert (kept.metadata, LONGEST_METADATA) == ({}, 8_000)


def test_a_window_teaches_so_much_and_a_long_one_more() -> None:
    many = [learning(f"Check number {number}.") for number in range(500)]
    limited = within_limits(many, 10)
    assert limited.candidates == tuple(many[:MOST_LEARNINGS])
    assert limited.refused == 500 - MOST_LEARNINGS
    assert len(within_limits(many, 100).candidates) == 100


def test_what_is_hidden_is_not_stored() -> None:
    dirty = learning(
        "Be\u200b brief.",
        trigger="\u202eNow",
        rationale="So\U000e0041.",
        metadata={"a": "b\x07"},
        evidence=(Quote(1, "b\u2060c"),),
    )
    clean = learning("Be brief.", trigger="Now", rationale="So.", metadata={"a": "b"}, evidence=(Quote(1, "bc"),))
    assert within_limits([dirty], 1).candidates == (clean,)


def test_a_merged_wording_that_is_too_long_retires_nothing() -> None:
    merged = Decision("merge", (1,), content=SENTENCE * 200, reason="alike")
    assert limited_decision(merged, learning()) == Decision("add", reason="the merged wording is too long")
    fine = Decision("merge", (1,), content="Check\u200b it.", reason="a\u202e")
    assert limited_decision(fine, learning()) == Decision("merge", (1,), content="Check it.", reason="a")
    assert limited_decision(Decision("replace", (1,)), learning()) == Decision("replace", (1,))


def test_what_always_held_goes_on_to_hold() -> None:
    always, sometimes = (Learning(Kind.USER_PLAYBOOK, "Old.", scope=scope) for scope in Scope)
    merge, when = Decision("merge", (1,)), Scope.WHEN_RELEVANT
    assert scope_after(learning(scope=when), merge, [sometimes, always]) is Scope.ALWAYS
    assert scope_after(learning(scope=when), merge, [sometimes]) is when
    assert scope_after(learning(scope=Scope.ALWAYS), merge, [sometimes]) is Scope.ALWAYS
    assert scope_after(learning(scope=when, trigger="On Mondays"), merge, [always]) is when
    assert scope_after(learning(), Decision("add"), []) is when
