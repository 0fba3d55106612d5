"""The scope of what is added in other languages, by words of the language."""

import pytest

from reflexio.language.standing import fact_holds_always, instruction_holds_always
from tests.bench.languages import FOLDER

LINES = [line.split(" ", 2) for line in (FOLDER / "scopes.txt").read_text(encoding="utf-8").splitlines()]
STATEMENTS = [tuple(line) for line in LINES if line[0] in ("P", "I")]


def holds_always(kind: str, text: str) -> bool | None:
    return fact_holds_always(text) if kind == "P" else instruction_holds_always("", text)


@pytest.mark.parametrize(("kind", "scope", "text"), STATEMENTS, ids=[text for _, _, text in STATEMENTS])
def test_words_decide_rightly_or_leave_it_open(kind: str, scope: str, text: str) -> None:
    assert holds_always(kind, text) in (scope == "A", None)


def test_words_decide_most_statements() -> None:
    decided = [text for kind, _, text in STATEMENTS if holds_always(kind, text) is not None]
    assert len(decided) >= 0.8 * len(STATEMENTS)


@pytest.mark.parametrize(
    ("trigger", "text", "expected"),
    [
        ("eine Erstattung", "Immer die Nachbarn fragen.", False),
        ("always", "Immer auf Deutsch antworten.", True),
        ("", "Schreib ein Gedicht.", None),
    ],
)
def test_a_trigger_decides_before_words(trigger: str, text: str, expected: bool | None) -> None:
    assert instruction_holds_always(trigger, text) is expected


@pytest.mark.parametrize(
    "text", ["Ich bin heute müde.", "Hoy estoy cansado.", "Je suis fatigué ce soir.", "今天我很累。"]
)
def test_the_moment_holds_not_always(text: str) -> None:
    assert fact_holds_always(text) is False
