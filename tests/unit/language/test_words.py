import pytest

from reflexio.language.words import content_words, figures, is_negative, overlap, phrase, root, words


def test_words_that_carry_meaning_survive_inflection() -> None:
    assert content_words("The user’s replies are brief.") == content_words("Reply briefly!")
    assert content_words("The user asks how to reset passwords") == content_words("resetting the password")


def test_words_of_grammar_and_negations_carry_no_meaning() -> None:
    assert content_words("It isn’t what they don't always want, or never do.") == frozenset()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Use tables.", False),
        ("Do not use tables.", True),
        ("Don’t use tables.", True),
        ("Avoid tables.", True),
        ("Do not avoid tables.", False),
    ],
)
def test_two_negations_cancel_each_other(text: str, expected: bool) -> None:
    assert is_negative(words(text)) is expected


@pytest.mark.parametrize(("word", "stem"), [("quickly", "quick"), ("reply", "repli"), ("formally", "formal")])
def test_adverbs_have_the_stem_of_their_adjective(word: str, stem: str) -> None:
    assert root(word) == stem


def test_overlap_is_measured_by_the_smaller_set() -> None:
    assert overlap(frozenset("ab"), frozenset("abcd")) == 1.0
    assert overlap(frozenset(), frozenset("a")) == 0.0


def test_figures_are_numbers_as_they_are_written() -> None:
    assert figures("At 12:30, 1,200 people and 7.") == {"12:30", "1,200", "7"}


def test_in_a_phrase_spaces_and_apostrophes_are_of_any_kind() -> None:
    assert phrase("I don't (really )?like").match("i \n don’t really  like")
