"""Learning inside one run: what the loop costs by itself, and recorded runs of others replayed through it."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reflexio.agents import Agent, Attempt, AttemptRecord, Message, ModelReply, Reflexion, UnitTests, Usage, reflexion
from tests.bench.report import Figure
from tests.bench.retrieval_sets import DATA, lines

SOLVED_BY_TRIAL = [84, 103, 111, 113, 117, 118, 123, 126, 128, 129, 130, 130, 131, 133, 134]
FEW, MANY, RUNS, ROUNDS = 2, 12, 40, 40


def agents() -> list[Figure]:
    figures = asyncio.run(_overhead())
    if not DATA.exists():
        print(f"{DATA} is not here: no recorded runs are replayed.")
        return figures
    return [*figures, *asyncio.run(_replays())]


# What one more failed attempt costs


async def _overhead() -> list[Figure]:
    """A failed attempt is acting, evaluating and reflecting, each with an answer that takes no time.

    Beside each figure stands how many turns of an empty loop the same machine makes in that time, both in the fastest
    round: other work on the machine moves the first and hardly the second. The 60 µs are wanted of a machine on which
    jeevesagent takes 88 to 105; it took about 12,500 turns, of which they are 7,000.
    """
    figures = []
    known = "jeevesagent 88-105, loomflow 117, on a quiet machine"
    for name, run in (("any callable", _callable), ("Agent with Reflexion over ReAct", _agent)):
        cost, turns = await _marginal(run)
        figures += [
            Figure(f"one more failed attempt, {name}", cost, "µs", 60, baseline=known),
            Figure(f"the same in turns of an empty loop, {name}", turns, "turns", 7_000, baseline="jeevesagent 12,500"),
        ]
    return figures


async def _marginal(run: Callable[[int], Awaitable[Any]]) -> tuple[float, float]:
    """In µs the median; in turns the fastest, each part by itself: a slow run of few would make a round look fast."""
    await _seconds(run, MANY)
    rounds = [(await _seconds(run, MANY), await _seconds(run, FEW), _one_turn()) for _ in range(ROUNDS)]
    more = MANY - FEW
    many, few, turn = map(min, zip(*rounds, strict=True))
    return statistics.median((many - few) / more * 1e6 for many, few, _ in rounds), (many - few) / more / turn


async def _seconds(run: Callable[[int], Awaitable[Any]], attempts: int) -> float:
    """Of the processor: there is nothing to wait for, and others on the machine are not ours to measure."""
    began = time.process_time()
    for _ in range(RUNS):
        await run(attempts)
    return (time.process_time() - began) / RUNS


def _one_turn(turns: int = 50_000) -> float:
    began = time.process_time()
    for _ in range(turns):
        pass
    return (time.process_time() - began) / turns


async def _callable(attempts: int) -> None:
    async def act(task: str, attempt: Attempt) -> str:
        return "out"

    async def evaluate(output: str) -> tuple[float, str]:
        return 0.1, "wrong"

    async def reflect(record: AttemptRecord) -> str:
        return f"Lesson {record.number}."

    await reflexion(act, "task", evaluate=evaluate, reflect=reflect, max_attempts=attempts)


class _Instant:
    """A model of zero latency that fails whatever it is asked to judge."""

    name = "instant"
    usage = Usage(1, 10, 5)

    async def complete(self, messages: Sequence[Message], *, tools: Sequence[Any] = ()) -> ModelReply:
        return ModelReply("score: 0.1" if messages[0].content.startswith("You judge") else "out", usage=self.usage)

    async def stream(self, messages: Sequence[Message], *, tools: Sequence[Any] = ()) -> Any:
        yield await self.complete(messages)


async def _agent(attempts: int) -> None:
    await Agent("Help.", model=_Instant(), architecture=Reflexion(max_attempts=attempts)).run("task")


# Recorded runs


async def _replays() -> list[Figure]:
    replay = await alfworld()
    tasks = lines("replay/humaneval.jsonl")
    began = time.perf_counter()
    agreed = await agreement(tasks)
    taken = time.perf_counter() - began
    trials = sum(ours == theirs for ours, theirs in zip(replay.solved_by_trial, SOLVED_BY_TRIAL, strict=True))
    return [
        Figure("ALFWorld: trials with the recorded number solved, of 15", trials, "", 15, more_is_better=True),
        Figure("ALFWorld: lessons beyond those recorded", abs(replay.lessons - replay.lessons_recorded), "", 0),
        Figure("HumanEval: verdicts as recorded, of 164", agreed, "", 160, more_is_better=True),
        Figure("HumanEval: one verdict, two at a time", taken / len(tasks) * 1000, "ms"),
    ]


@dataclass(frozen=True)
class Replay:
    solved_by_trial: list[int]
    lessons: int
    lessons_recorded: int


async def alfworld() -> Replay:
    """Each recorded task tried as often as it was, with the lessons that were written."""
    tasks = lines("replay/alfworld.jsonl")
    trials = len(SOLVED_BY_TRIAL)
    solved, lessons = [0] * trials, 0
    for task in tasks:
        result = await _replayed(task, trials)
        lessons += len(result.lessons)
        if result.passed:
            for trial in range(len(result.attempts) - 1, trials):
                solved[trial] += 1
    return Replay(solved, lessons, sum(len(task["lessons"]) for task in tasks))


async def _replayed(task: dict[str, Any], trials: int) -> Any:
    async def act(name: str, attempt: Attempt) -> bool:
        return bool(task["success_by_trial"][attempt.number - 1])

    async def evaluate(success: bool) -> bool:
        return success

    async def reflect(record: AttemptRecord) -> str:
        return str(task["lessons"][record.number - 1])

    return await reflexion(act, task["task"], evaluate=evaluate, reflect=reflect, max_attempts=trials)


async def agreement(tasks: Sequence[dict[str, Any]]) -> int:
    """How many recorded solutions our evaluator judges as they were judged."""
    two_at_a_time = asyncio.Semaphore(2)

    async def agrees(task: dict[str, Any]) -> bool:
        async with two_at_a_time:
            tests = UnitTests(f"{task['test']}\ncheck({task['entry_point']})\n")
            found = await tests(task["prompt"] + task["solution"])
            return found.passed is task["is_solved"]

    return sum(await asyncio.gather(*map(agrees, tasks)))


if __name__ == "__main__":
    for figure in agents():
        print(f"{figure.name}: {figure.value:.4g} {figure.unit}")
