"""Judges write scores in many ways; each is read as it is meant, and in doubt not at all."""

import pytest

from reflexio.agents.evaluators.judge import parse_score, read_score


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("score: 8/10", 0.8),
        ("score: 85%", 0.85),
        ("score: -0.5", 0.0),
        ("attempt 1 was good", 0.0),
        ("2 of 10; 1 issue", 0.0),
        ("score: 1e-1", 0.1),
        ("score: 0,9", 0.9),
        ("7/10", 0.7),
        ("overall_score: 0.4 final score: 0.9", 0.9),
        ("**Score:** 0.9", 0.9),
        ('{"score": 0.9}', 0.9),
        (".75", 0.75),
    ],
)
def test_the_table_of_known_misreadings_is_right_in_every_row(text: str, score: float) -> None:
    assert parse_score(text) == pytest.approx(score)


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("score: 0.7", 0.7),
        ("SCORE=1", 1.0),
        ("score: 8 out of 10", 0.8),
        ("score: 100 %", 1.0),
        ("score: 0.7, good", 0.7),
        ("The score: 0.7.", 0.7),
        ("- **Score**: `0.6`", 0.6),
        ("# Score: 0.3", 0.3),
        ("score: <number between 0 and 1>\nscore: 0.4", 0.4),
        ("score: 0.9\nThe earlier score: 0.2 was too low.", 0.9),
        ("Clarity score: 0.9. Overall score: 0.6. Style score: 1.0.", 0.6),
        ('{"clarity_score": 0.9, "score": 0.4}', 0.4),
        ("A score: 0.5, I repeat, score: 0.5.", 0.5),
        ("0.8 - mostly fine", 0.8),
        ("7/10, solid", 0.7),
        ("\n\n 1 \n", 1.0),
        ("score: 0", 0.0),
    ],
)
def test_a_score_is_read_in_the_forms_that_judges_use(text: str, score: float) -> None:
    assert read_score(text) == pytest.approx(score)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n",
        "score: 8",
        "score: 1.2",
        "score: 10/8",
        "score: 5/0",
        "score: 1,000",
        "score: 0.8-0.9",
        "The score: 0.2. With the date it would be a score: 1.0.",
        "Clarity score: 0.4, style score: 0.9",
        "score: 0.9.1",
        "score: nan",
        "score: 1e400",
        "score: ٠.٩",
        "10 of 10 tests pass",
        "100% wrong",
        "3/4 of it is missing",
        "1. First point",
        "2024-01-01",
        "I am 0.9 sure that it is wrong",
        "Well. " * 20_000,
    ],
)
def test_what_is_no_score_is_not_taken_for_one(text: str) -> None:
    assert read_score(text) is None
    assert parse_score(text) == 0.0


@pytest.mark.parametrize("text", ["score " * 50_000, "0" * 100_000, "x" + "score: 0.9 " * 20_000, " " * 200_000 + "x"])
def test_a_novel_is_read_in_one_go(text: str) -> None:
    assert read_score(text) in (None, 0.9)
