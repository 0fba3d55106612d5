"""Differences: both texts come back letter by letter, changes are whole words, and hostile texts cost no time."""

import time
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexio.dashboard.diff import mark_added, mark_changes, mark_removed, word_diff

texts = st.lists(
    st.sampled_from(["ask", "Ask", " ", "  ", "\n", ".", "!", "the", "order", "订", "单", "é", "<b>"])
).map("".join)


@given(texts, texts)
def test_both_texts_can_be_read_back(old: str, new: str) -> None:
    parts = word_diff(old, new)
    assert "".join(part.text for part in parts if part.change != "added") == old
    assert "".join(part.text for part in parts if part.change != "removed") == new
    assert all(part.text for part in parts)
    assert all(one.change != other.change for one, other in pairwise(parts))


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_characters_can_be_read_back(old: str, new: str) -> None:
    parts = word_diff(old, new)
    assert "".join(part.text for part in parts if part.change != "added") == old
    assert "".join(part.text for part in parts if part.change != "removed") == new


@given(texts)
def test_equal_texts_have_no_change(text: str) -> None:
    assert "<ins>" not in mark_changes(text, text)
    assert "<del>" not in mark_changes(text, text)


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("Ask for the number.", "Ask for the order number.", "Ask for the <ins>order </ins>number."),
        ("Ask twice.", "Ask once.", "Ask <del>twice</del><ins>once</ins>."),
        ("先问订单号。", "先问客户订单号。", "先问<ins>客户</ins>订单号。"),
        ("", "New.", "<ins>New.</ins>"),
        ("Old.", "", "<del>Old.</del>"),
        ("Offer tea", "Never, ever refund", "<del>Offer tea</del><ins>Never, ever refund</ins>"),
        ("a b", "c d", "<del>a b</del><ins>c d</ins>"),
    ],
)
def test_changes_are_whole_words(old: str, new: str, shown: str) -> None:
    assert mark_changes(old, new) == shown


def test_words_are_escaped_on_both_sides() -> None:
    old, new = "<script>old</script> & one", '<script>new</script> & "one"'
    for marked in (mark_changes(old, new), mark_removed(old, new), mark_added(old, new)):
        assert "<script>" not in marked
        assert "&lt;" in marked


def test_each_side_has_its_own_text() -> None:
    assert mark_removed("Ask twice.", "Ask once.") == "Ask <del>twice</del>."
    assert mark_added("Ask twice.", "Ask once.") == "Ask <ins>once</ins>."


def test_one_new_sentence_in_a_long_text_is_found() -> None:
    sentences = [f"Rule {number} holds for everybody here." for number in range(300)]
    old, new = " ".join(sentences), " ".join([*sentences[:150], "A new one.", *sentences[150:299], "Rule 299 is gone."])
    added = [part.text for part in word_diff(old, new) if part.change == "added"]
    assert [text.strip() for text in added] == ["A new one.", "is gone"]


@pytest.mark.parametrize("vocabulary", [1, 2, 5, 50, 1000])
@pytest.mark.parametrize(("words", "stop"), [(390, " "), (390, ". "), (20_000, " "), (20_000, ". "), (20_000, "\n")])
def test_hostile_texts_cost_little_time(vocabulary: int, words: int, stop: str) -> None:
    random = Random(vocabulary)
    old, new = (stop.join(f"w{random.randrange(vocabulary)}" for _ in range(words)) for _ in range(2))
    begun = time.process_time()
    word_diff(old, new)
    assert time.process_time() - begun < 1.0
