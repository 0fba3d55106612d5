"""Quotes are found in the words of the turn, whatever signs stand between them, and nothing of a turn is trusted."""

import pytest

from reflexio.dashboard.marking import LinkedQuote, mark_quotes, mark_words


def marked(text: str, *quotes: str) -> list[str]:
    html = str(mark_quotes(text, [LinkedQuote(quote, "/learnings/1", "t") for quote in quotes]))
    assert "".join(part.partition("</mark></a>")[0] for part in html.split("<mark>"))
    return [part.partition("</mark>")[0] for part in html.split("<mark>")[1:]]


@pytest.mark.parametrize(
    ("text", "quote", "found"),
    [
        ("No. Ask me first, please.", "ask me first", ["Ask me first"]),
        ("I said: don’t call!", "don't call", ["don’t call!"]),
        ("One *bold* word", "one bold word", ["One *bold* word"]),
        ("line one\nline two", "line one line two", ["line one\nline two"]),
        ("Begin here, then a lot more, end there.", "Begin here … end there", ["Begin here", "end there."]),
        ("Only the second is here", "another turn said this\nsecond is here", ["second is here"]),
        ("catalogue", "cat", []),
        ("请用中文回答。", "请用中文回答", ["请用中文回答。"]),
        ("nothing", "…", []),
        ("nothing", "", []),
        ("a (b+)+$ c", "(b+)+$ c", ["b+)+$ c"]),
    ],
)
def test_a_quote_is_found_as_it_was_said(text: str, quote: str, found: list[str]) -> None:
    assert marked(text, quote) == found


def test_quotes_that_overlap_leave_the_text_whole() -> None:
    html = mark_quotes(
        "a b c d", [LinkedQuote("b c", "/1", ""), LinkedQuote("c d", "/2", ""), LinkedQuote("a", "/3", "")]
    )
    assert html.striptags() == "a b c d"
    assert str(html).count("<mark>") == 2


def test_what_users_wrote_is_escaped_inside_and_outside_of_marks() -> None:
    html = str(mark_quotes('<script>1</script> <b onclick="x">hi</b>', [LinkedQuote("b onclick", "/1", '"><script>')]))
    assert "<script" not in html
    assert "<b " not in html
    assert "<mark>b onclick" in html
    assert "<script" not in str(mark_words("<script> refund <b>", "refund script"))


def test_words_are_marked_in_every_form() -> None:
    assert str(mark_words("Refunds were refunded.", "refund")).count("<mark>") == 2
