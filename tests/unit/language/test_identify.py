"""The language of a text, from its script and its short words."""

from pathlib import Path

import pytest

from reflexio.language.identify import OTHER, UNDECIDED, language_of

SETS = Path(__file__).parents[2] / "bench" / "languages"
NOT_READ = [line for line in (SETS / "unread.txt").read_text("utf-8").splitlines() if line and line[0] not in "#["]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Where is my order?", "en"),
        ("I'm glad everyone had fun!", "en"),
        ("Ich wohne in Köln.", "de"),
        ("ich heisse petra", "de"),
        ("no me llames antes de las diez", "es"),
        ("je suis vegetarienne", "fr"),
        ("nao como carne", "pt"),
        ("我住在上海", "zh"),
        ("請一律使用繁體中文回覆。", "zh"),
        ("", UNDECIDED),
        ("12345", UNDECIDED),
        ("Tokyo", UNDECIDED),
        ("https://example.com/der/die/das", UNDECIDED),
    ],
)
def test_the_language_of_a_sentence(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize("text", NOT_READ)
def test_other_languages_are_told_apart(text: str) -> None:
    assert language_of(text) == OTHER


def test_a_text_without_any_known_word_is_in_another_language() -> None:
    assert language_of("Mimi ninakula mboga, ninaishi Nairobi") == OTHER


def test_what_is_expected_needs_less_evidence() -> None:
    assert [language_of("La lampe clignote."), language_of("La lampe clignote.", "fr")] == ["es", "fr"]
