"""Parts that fail in random order: the best finished answer is kept, and a run stays within its budget."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reflexio.agents import Attempt, AttemptFailed, AttemptRecord, Budget, Evaluation, Usage, reflexion
from tests.unit.agents.notes import Broken, Notes

SCORES = st.floats(0, 1, allow_nan=False)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["answer", "answer", "answer", "failed", "raise"]),
        st.one_of(SCORES, st.sampled_from(["raise", "nonsense"])),
        st.sampled_from(["lesson", "raise", "nothing", "nonsense"]),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=150, deadline=None)
@given(STEPS, st.one_of(st.none(), st.integers(0, 12)), st.booleans(), st.one_of(st.none(), st.integers(1, 3)))
async def test_the_best_scored_answer_survives_everything(
    steps: list[Any], calls: int | None, broken: bool, patience: int | None
) -> None:
    made = 0

    class Part:
        spends = True

    async def act(task: str, attempt: Attempt) -> int:
        nonlocal made
        made += 1
        attempt.spend(Usage(calls=1))
        match steps[attempt.number - 1][0]:
            case "failed":
                raise AttemptFailed("It failed.")
            case "raise":
                raise ValueError("agent")
            case _:
                return attempt.number

    class Evaluator(Part):
        async def __call__(self, output: int) -> Any:
            nonlocal made
            made += 1
            match steps[output - 1][1]:
                case "raise":
                    raise KeyError("evaluator")
                case "nonsense":
                    return "good"
                case score:
                    return Evaluation(score, feedback="Better.", usage=Usage(calls=1))

    class Reflector(Part):
        async def __call__(self, record: AttemptRecord, attempt: Attempt) -> Any:
            nonlocal made
            made += 1
            attempt.spend(Usage(calls=1))
            match steps[record.number - 1][2]:
                case "raise":
                    raise KeyError("reflector")
                case "nonsense":
                    return 5
                case "nothing":
                    return ""
                case _:
                    return "Do better."

    try:
        result = await reflexion(
            act,
            "task",
            evaluate=Evaluator(),
            reflect=Reflector(),
            lessons=Broken() if broken else Notes(),
            max_attempts=len(steps),
            patience=patience,
            budget=Budget(calls=calls),
        )
    except ValueError:
        assert all(step[0] != "answer" for step in steps[: [step[0] for step in steps].index("raise")])
        return
    scored = [each for each in result.attempts if each.finished and each.evaluation.error is None]
    finished = [each for each in result.attempts if each.finished]
    if scored:
        assert result.score == max(each.score for each in scored)
    assert (result.output is None) == (not finished)
    assert result.passed == any(each.passed for each in result.attempts)
    assert calls is None or result.usage.calls <= calls
    assert made >= len(result.attempts)
