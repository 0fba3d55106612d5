"""The ready evaluators that need neither model nor process, and how they are combined."""

import math
import re
import sys
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from reflexio.agents import All, Attempt, Evaluation, ExactMatch, Regex, Schema, Usage, Weighted
from reflexio.agents import Any as AnyPasses


class Person(BaseModel):
    name: str
    age: int


async def test_an_exact_match_ignores_blanks_around_text_and_does_not_give_the_answer_away() -> None:
    assert (await ExactMatch("Paris")("  Paris\n")).passed
    wrong = await ExactMatch("Paris")("Rome")
    assert (wrong.passed, "Rome" in wrong.feedback, "Paris" in wrong.feedback) == (False, True, False)
    assert not (await ExactMatch("Paris")("paris")).passed
    assert (await ExactMatch("Paris", ignore_case=True)("PARIS")).passed
    assert (await ExactMatch([1, 2])([1, 2])).passed


async def test_a_pattern_is_searched_for() -> None:
    assert (await Regex("[0-9]+")("in 1999")).passed
    assert (await Regex(re.compile("YES", re.IGNORECASE))("yes")).passed
    assert (await Regex("[0-9]+")("never")).feedback == "Nothing in the output matches [0-9]+."


@pytest.mark.parametrize(
    "output", ['{"name": "Ada", "age": 36}', {"name": "Ada", "age": 36}, Person(name="Ada", age=36)]
)
async def test_a_shape_is_told_by_a_pydantic_model(output: Any) -> None:
    assert (await Schema(Person)(output)).passed


async def test_a_strict_model_reads_text_as_json() -> None:
    """JSON has no dates and no tuples; a strict model takes them as JSON writes them."""

    class Fair(BaseModel):
        model_config = ConfigDict(strict=True)
        day: date
        hours: tuple[int, int]

    assert (await Schema(Fair)('{"day": "2027-05-03", "hours": [9, 17]}')).passed
    assert not (await Schema(Fair)({"day": "2027-05-03", "hours": [9, 17]})).passed


@pytest.mark.parametrize("end", ["\n", "\r\n"])
async def test_code_fences_may_end_their_lines_in_either_way(end: str) -> None:
    assert (await Schema(list[int])(end.join(["Here:", "```json", "[1]", "```", "Done."]))).passed


async def test_json_is_found_between_code_fences() -> None:
    assert (await Schema(list[int])("Here:\n```json\n[1, 2]\n```\n")).passed


async def test_every_fault_of_a_shape_is_feedback() -> None:
    found = await Schema(Person)('{"age": "old"}')
    assert found.feedback.startswith("name: Field required; age: ")


@pytest.mark.parametrize("output", ["", "not json", "[" * 100_000, '{"a": }'])
async def test_what_is_not_json_is_said_to_be_none(output: str) -> None:
    found = await Schema(Person)(output)
    assert (found.passed, found.error) == (False, None)
    assert "not JSON" in found.feedback


async def test_a_shape_is_told_by_a_json_schema() -> None:
    schema = Schema({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]})
    assert (await schema('{"age": 3}')).passed
    assert (await schema({"age": "x"})).feedback == "age: 'x' is not of type 'integer'"
    assert (await schema({})).feedback == "'age' is a required property"


def test_a_json_schema_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema.validators", None)
    with pytest.raises(ImportError, match="pip install jsonschema"):
        Schema({"type": "object"})


# Combining


def scoring(score: float, feedback: str = "") -> Any:
    async def evaluate(output: Any) -> Evaluation:
        return Evaluation(score, feedback=feedback, usage=Usage(1, 10))

    return evaluate


def broken(output: Any) -> float:
    raise KeyError("key")


def untouchable(output: Any) -> float:
    raise AssertionError("it was asked")


async def test_all_must_pass_and_the_first_failure_ends_it() -> None:
    both = await All(scoring(0.9), scoring(0.8))("out")
    assert (both.passed, both.usage.calls) == (True, 2)
    assert both.score == pytest.approx(0.85)
    failed = await All(scoring(1.0), scoring(0.4, "no"), untouchable)("out")
    assert (failed.passed, failed.feedback) == (False, "no")
    assert failed.score == pytest.approx(1.4 / 3)


async def test_one_of_any_is_enough() -> None:
    found = await AnyPasses(broken, scoring(0.3, "no"), scoring(0.9), untouchable)("out")
    assert (found.passed, found.score, found.feedback) == (True, 0.9, "")
    neither = await AnyPasses(scoring(0.3, "no"), scoring(0.5, "nearly"))("out")
    assert (neither.passed, neither.score, neither.feedback) == (False, 0.5, "no\nnearly")


async def test_weights_make_one_score_of_many() -> None:
    found = await Weighted((scoring(1.0), 3), (scoring(0.0), 1))("out")
    assert (found.score, found.passed) == (0.75, None)
    assert found.criteria == {"evaluate 1": 1.0, "evaluate 2": 0.0}


@pytest.mark.parametrize("combined", [All(broken), AnyPasses(broken), Weighted((broken, 1), (scoring(1), 1))])
async def test_a_part_that_fails_is_named(combined: Any) -> None:
    found = await combined("out")
    assert found.error == "broken: KeyError: 'key'"
    assert not found.passed


async def test_the_threshold_of_the_run_counts_for_every_part() -> None:
    assert (await All(scoring(0.5))("out", Attempt("task", threshold=0.5))).passed
    assert not (await All(scoring(0.5))("out", Attempt("task", threshold=0.6))).passed


@pytest.mark.parametrize("weight", [-1, math.nan, math.inf])
def test_weights_are_numbers_that_can_be_weighed(weight: float) -> None:
    with pytest.raises(ValueError, match="Weights are"):
        Weighted((scoring(1.0), weight), (scoring(0.0), 1))


def test_nothing_cannot_be_combined() -> None:
    with pytest.raises(ValueError, match="at least one"):
        All()
    with pytest.raises(ValueError, match="Weights"):
        Weighted((scoring(1), 0))
