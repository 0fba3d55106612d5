"""Marked words are whole words, in any script, and what a user wrote stays text."""

import pytest

from reflexio.dashboard.marks import mark_code, mark_words


@pytest.mark.parametrize(
    ("text", "words", "marked"),
    [
        ("The parcel is parcelled.", ["parcel"], "The <mark>parcel</mark> is parcelled."),
        ("<b>Parcel</b>", ["parcel"], "&lt;b&gt;<mark>Parcel</mark>&lt;/b&gt;"),
        ("Größe und größer", ["größe"], "<mark>Größe</mark> und größer"),
        ("请用中文回答", ["中文"], "请用<mark>中文</mark>回答"),
        ("don’t hurry", ["don't"], "<mark>don’t</mark> hurry"),
        ("a.b axb", ["a.b"], "<mark>a.b</mark> axb"),
        ("nothing", [], "nothing"),
        ("<script>", ["script"], "&lt;<mark>script</mark>&gt;"),
    ],
)
def test_words_are_marked(text: str, words: list[str], marked: str) -> None:
    assert str(mark_words(text, words)).replace("&#39;", "'") == marked


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("run `a <b>` now", "run <code>a &lt;b&gt;</code> now"),
        ("`a` and `b`", "<code>a</code> and <code>b</code>"),
        ("a ` alone <b>", "a ` alone &lt;b&gt;"),
        ("", ""),
    ],
)
def test_commands_between_backticks_are_code(text: str, marked: str) -> None:
    assert str(mark_code(text)) == marked
