"""Recorded runs of others, replayed through our loop and our evaluators."""

import pytest

from tests.bench.agents import SOLVED_BY_TRIAL, agreement, alfworld
from tests.bench.retrieval_sets import DATA, lines

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the recorded runs are not part of the tree")


async def test_recorded_attempts_are_solved_when_they_were_and_teach_as_much() -> None:
    replay = await alfworld()
    assert replay.solved_by_trial == SOLVED_BY_TRIAL
    assert replay.lessons == replay.lessons_recorded == 200


async def test_recorded_solutions_are_judged_as_they_were() -> None:
    some = lines("replay/humaneval.jsonl")[::12]
    assert await agreement(some) >= len(some) - 1
