import pytest

from reflexio.providers.embedding.local import MODEL
from reflexio.providers.embedding.wordpiece import CACHE_SIZE, MAX_WORD_CHARACTERS, WordPiece, words
from tests.unit.providers.embedding.golden import Golden, golden

VOCABULARY = (MODEL / "vocab.txt").read_text("utf-8").splitlines()


@pytest.fixture(scope="module")
def tokeniser() -> WordPiece:
    return WordPiece(VOCABULARY, max_tokens=256)


def pieces(tokeniser: WordPiece, text: str) -> list[str]:
    return [VOCABULARY[number] for number in tokeniser.ids(text)][1:-1]


@pytest.mark.parametrize("reference", golden(), ids=lambda reference: repr(reference.text[:20]))
def test_ids_are_those_of_the_reference(tokeniser: WordPiece, reference: Golden) -> None:
    assert tokeniser.ids(reference.text) == reference.ids


def test_words_are_lower_case_without_accents_and_punctuation_stands_alone() -> None:
    assert list(words("Crème-BRÛLÉE, 5€!")) == ["creme", "-", "brulee", ",", "5€", "!"]


def test_special_tokens_in_a_text_are_ordinary_text(tokeniser: WordPiece) -> None:
    assert pieces(tokeniser, "[SEP]") == ["[", "sep", "]"]


def test_a_word_longer_than_the_limit_is_one_unknown(tokeniser: WordPiece) -> None:
    assert pieces(tokeniser, "a" * (MAX_WORD_CHARACTERS + 1)) == ["[UNK]"]
    assert "[UNK]" not in pieces(tokeniser, "a" * MAX_WORD_CHARACTERS)


def test_lone_surrogates_and_control_characters_are_dropped(tokeniser: WordPiece) -> None:
    assert tokeniser.ids("te\ud800a\x00 \udfffcup") == tokeniser.ids("tea cup")


def test_at_most_max_tokens_with_markers_at_both_ends(tokeniser: WordPiece) -> None:
    ids = tokeniser.ids("tea " * 1000)
    assert len(ids) == 256
    assert [VOCABULARY[ids[0]], VOCABULARY[ids[-1]]] == ["[CLS]", "[SEP]"]


def test_a_megabyte_reads_like_its_beginning(tokeniser: WordPiece) -> None:
    assert tokeniser.ids("green tea " * 100_000) == tokeniser.ids("green tea " * 200)


def test_the_word_cache_is_bounded_and_holds_no_long_words(tokeniser: WordPiece) -> None:
    small = WordPiece(VOCABULARY, max_tokens=256)
    for number in range(CACHE_SIZE + 500):
        small.ids(f"w{number}")
    small.ids("a" * 20_000)
    assert small._cached_ids.cache_info().currsize == CACHE_SIZE
    misses = small._cached_ids.cache_info().misses
    small.ids("a" * 20_000)
    assert small._cached_ids.cache_info().misses == misses == CACHE_SIZE + 500


def test_forgotten_words_are_not_in_memory() -> None:
    tokeniser = WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "tea"], max_tokens=8)
    tokeniser.ids("tea for Ada")
    assert tokeniser._cached_ids.cache_info().currsize == 3
    tokeniser.forget()
    assert tokeniser._cached_ids.cache_info().currsize == 0
    assert tokeniser.ids("tea") == [2, 4, 3]
