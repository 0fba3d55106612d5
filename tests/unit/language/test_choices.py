"""What standing orders choose, in six languages, and which of them cannot both hold."""

import time

import pytest

from reflexio.language.choices import chosen, other_choice, switches_language


@pytest.mark.parametrize(
    ("older", "newer", "matter"),
    [
        ("Always answer in German.", "In English please from now on.", "language"),
        ("Antworte immer auf Deutsch.", "Ab jetzt bitte auf Englisch.", "language"),
        ("Antworte immer auf Deutsch.", "In English please from now on.", "language"),
        ("Responda siempre en español.", "A partir de ahora en inglés, por favor.", "language"),
        ("Réponds toujours en français.", "En anglais désormais.", "language"),
        ("Responda sempre em português.", "Em inglês, por favor.", "language"),
        ("请用中文回答。", "以后请用英文。", "language"),
        ("Immer duzen.", "Bitte siezen Sie mich.", "formality"),
        ("Keep your answers short.", "Give me long, detailed answers from now on.", "length"),
        ("Use bullet points.", "Plain paragraphs please, no more bullet points.", "layout"),
        ("Always use kilometres.", "Use miles from now on.", "distance"),
        ("Temperatures in Celsius.", "Fahrenheit please.", "temperature"),
        ("Show prices in euros.", "Prices in dollars.", "currency"),
        ("Contact the user by email only.", "Contact the user by WhatsApp from now on.", "channel"),
        ("Appelez-moi toujours par téléphone.", "Désormais, contactez-moi par courriel.", "channel"),
        ("Send the user a daily report.", "Send the user a weekly report.", "frequency"),
    ],
)
def test_the_newer_choice_is_another_one(older: str, newer: str, matter: str) -> None:
    assert other_choice(newer, older) == matter


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Answer in German.", "Use metric units."),
        ("Answer in German.", "Do not answer in English."),
        ("Answer in German.", "Antworte auf Deutsch."),
        ("Answer in German and English.", "Answer in English."),
        ("Keep answers short.", "Explain long words."),
        ("Never use emojis.", "Use bullet points."),
        ("Ask for the German address.", "Answer in English."),
    ],
)
def test_both_hold(one: str, other: str) -> None:
    assert other_choice(one, other) == other_choice(other, one) == ""


@pytest.mark.parametrize(
    "sentence",
    [
        *(
            "Lieber doch auf Englisch.",
            "Ab jetzt auf Deutsch bitte.",
            "Mejor en inglés.",
            "En anglais, s'il vous plaît.",
        ),
        *("Agora em inglês, por favor.", "请用英文。"),
    ],
)
def test_a_sentence_switches_the_language(sentence: str) -> None:
    assert switches_language(sentence)


@pytest.mark.parametrize(
    "sentence",
    ["Wie sagt man das auf Englisch?", "¿Cómo se dice en inglés?", "Schreib die Mail auf Englisch.", "在英文课上"],
)
def test_other_sentences_do_not(sentence: str) -> None:
    assert not switches_language(sentence)


@pytest.mark.parametrize("unit", ["auf ", "no ", "in english ", "mejor, ", "answer ", "a"])
def test_long_texts_are_read_soon(unit: str) -> None:
    chosen("x")
    begun = time.process_time()
    chosen(unit * 20_000)
    switches_language(unit * 20_000)
    assert time.process_time() - begun < 1
