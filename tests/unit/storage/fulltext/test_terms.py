import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexio.storage.fulltext.terms import as_numbers, query_terms, terms, token, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Refunds, refunded!", ["refund", "refund"]),
        ("snake_case words", ["snake", "case", "word"]),
        ("Café CAFÉ cafe", ["cafe", "cafe", "cafe"]),
        ("退款单", ["退", "款", "单", "退款", "款单"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("done 🎉🎉", ["done", "🎉", "🎉"]),
        ("  \n -- ... ", []),
    ],
)
def test_words_of_any_script(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_a_shorter_word_is_found_inside_one_with_particles() -> None:
    assert set(terms("한국어")) & set(terms("한국어를"))


def test_question_words_come_last_and_words_once() -> None:
    found = query_terms("When did the refund of the refund arrive?")
    assert found == ["refund", "arriv", "when", "did", "the", "of"]


def test_an_endless_query_is_read_at_both_ends() -> None:
    found = query_terms("alpha " + "x " * 500_000 + "omega")
    assert {"alpha", "omega"} <= set(found)
    assert len(query_terms(" ".join(f"word{n}" for n in range(10_000)))) == 128


@given(st.text())
def test_tokens_are_seven_harmless_letters_each(text: str) -> None:
    written = tokens(terms(text))
    assert all(len(part) == 7 and part.isascii() and part.isalnum() for part in written.split())
    assert as_numbers(written).tolist() == [as_numbers(f"{token(term)} ")[0] for term in terms(text)]


def test_different_terms_get_different_tokens() -> None:
    assert len({token(f"term{n}") for n in range(20_000)}) == 20_000
