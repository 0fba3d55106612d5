"""Judges write scores in many ways; each is read as it is meant, and in doubt not at all."""

import pytest

from reflexio.agents.evaluators.score import parse_score, read_score, read_verdict


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
    ("text", "score"),
    [
        ("score: <0.9>", 0.9),
        ("Score (0-1): 0.3", 0.3),
        ("**Score:** 8/10", 0.8),
        ("0,7", 0.7),
        ("85%", 0.85),
        ("Score: 0.9 out of 1", 0.9),
        ("Score (out of 10): 7", 0.7),
        ("Score (1-5): 4", 0.8),
        ("Score [0 to 100]: 85", 0.85),
        ("Score (%): 85", 0.85),
        ("score: 9 (out of 10)", 0.9),
        ("<score>0.8</score>", 0.8),
        ("| Score | 0.8 |", 0.8),
        ("## Score\n0.8\n\nA gap.", 0.8),
        ("Score: ~0.8", 0.8),
        ("The score is 0.8.", 0.8),
        ("Rating: 4/5", 0.8),
        ("Puntuación: 0,8", 0.8),
        ("分数：0.8", 0.8),
        ("So it is \\boxed{0.7}", 0.7),
        ('{"score": "8/10", "reason": "A gap."}', 0.8),
        ('{"score": 8, "max_score": 10}', 0.8),
        ('{"evaluation": {"score": 0.6}}', 0.6),
        ('Here it is:\n```json\n{"feedback": "Too long.", "score": 0.7}\n```', 0.7),
        ("{'feedback': 'Too long.', 'score': 0.7}", 0.7),
        ('{"feedback": "cut off", "score": 0.7, "more": "and th', 0.7),
        ("<think>\nscore: 0.2? No.\n</think>\nA gap.\nScore: 0.6", 0.6),
        ("It has no beginning, score: 0.2\n</think>\nScore: 0.6", 0.6),
        ("3 of 5 dates are right, 0.4 of it is style.\nscore: 0.5", 0.5),
        ("Score: 0.5\nOn second thought, the month is right.\nScore: 0.7", 0.7),
        ("Perhaps a score: 0.4. No.\nFinal score: 0.8", 0.8),
        ("score: 0.3\nWith the date it would be a score: 1.0.", 0.3),
        ("The score: 0.2. With the date it would be a score: 1.0.", 0.2),
        ('The output calls itself {"score": 1}.\nScore: 0.1', 0.1),
        ("The month is missing.\n\n0.8", 0.8),
    ],
)
def test_the_last_explicit_score_counts_in_any_form(text: str, score: float) -> None:
    assert read_score(text) == pytest.approx(score)


@pytest.mark.parametrize(
    ("text", "feedback"),
    [
        ("score: 0.4\nThe month is missing.", "The month is missing."),
        ("The month is missing.\nscore: 0.4", "The month is missing."),
        ("score: 0.4, the month is missing", "score: 0.4, the month is missing"),
        ("**Score:** 8/10", ""),
        ('{"score": 0.4, "rationale": "The month is missing."}', "The month is missing."),
        ("<think>Hm.</think>The month is missing.\nScore (0-1): 0.4", "The month is missing."),
    ],
)
def test_the_reasons_beside_a_score_are_the_feedback(text: str, feedback: str) -> None:
    verdict = read_verdict(text)
    assert verdict is not None
    assert verdict.feedback == feedback


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
        "With the date it would be a score: 1.0; so the score: 0.2.",
        "Score: 1.0 would need the date.",
        "score: <0.0 to 1.0>",
        "Score: 4 stars",
        "Rating: 1",
        '{"score": 8}',
        '{"score": true}',
        '{"clarity": {"score": 0.9}, "style": {"score": 0.4}}',
        "<think>Let me see. score: 0.9",
        "<think>score: 0.9</think>",
        "Faults found:\n1",
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


NOVELS = [
    "score " * 50_000,
    "0" * 100_000,
    "x" + "score: 0.9 " * 20_000,
    " " * 200_000 + "x",
    "{" * 50_000,
    "\n# " * 50_000,
    "the " * 50_000,
]


@pytest.mark.parametrize("text", NOVELS)
def test_a_novel_is_read_in_one_go(text: str) -> None:
    assert read_score(text) in (None, 0.9)
