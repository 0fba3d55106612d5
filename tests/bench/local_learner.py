"""The learner without a model: how many preferences it captures, how much else it says, and how fast it is."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from reflexio.learners.local.learner import LocalLearner
from reflexio.models.config import Config
from reflexio.models.learned import Candidate, Turn, Window
from reflexio.models.learning import Kind
from reflexio.ports.embedding import Embedder
from reflexio.providers.embedding.local import LocalEmbedder
from tests.bench.report import Figure
from tests.bench.retrieval_sets import DATA, lines

CAPTURED = 0.6
KINDS = frozenset((Kind.PROFILE, Kind.USER_PLAYBOOK))
ROLES = {"user", "assistant"}


def local_learner() -> list[Figure]:
    """The rules were devised on every other conversation of PrefEval; the rest is held out."""
    if not DATA.exists():
        print(f"{DATA} is not here: the local learner is not measured.")
        return []
    return asyncio.run(_measure())


async def _measure() -> list[Figure]:
    embedder = LocalEmbedder()
    try:
        return [*await _preferences(embedder), *await _alarms(embedder)]
    finally:
        await embedder.aclose()


async def _preferences(embedder: Embedder) -> list[Figure]:
    told = lines("retrieval/prefeval.jsonl")
    windows = [window(each["user"], each["turns"]) for each in told]
    learner = LocalLearner(embedder)
    began = time.perf_counter()
    found = [await learned(learner, each) for each in windows]
    taken = time.perf_counter() - began
    captured = [await is_captured(embedder, each["preference"], own) for each, own in zip(told, found, strict=True)]
    return [
        Figure("preferences captured, half it was devised on", _percent(captured[::2]), "%", 60, more_is_better=True),
        Figure("preferences captured, held-out half", _percent(captured[1::2]), "%", 60, more_is_better=True),
        Figure("learnings a conversation, mean", float(np.mean([len(own) for own in found])), "", 3),
        Figure("learnings a conversation, most", max(len(own) for own in found), "", 3),
        Figure("windows a second, one after the other", len(windows) / taken, "/s", 15, more_is_better=True),
    ]


async def _alarms(embedder: Embedder) -> list[Figure]:
    learner = LocalLearner(embedder)
    served = [await learned(learner, each) for each in airline()]
    chatted = [await learned(learner, each) for each in small_talk()]
    return [
        Figure("learnings a session of customer service (airline)", float(np.mean([len(own) for own in served])), ""),
        Figure(
            "learnings a window of ten turns among friends (LoCoMo)", float(np.mean([len(own) for own in chatted])), ""
        ),
    ]


def window(user: str, said: Sequence[dict[str, Any]]) -> Window:
    turns = (
        Turn(at + 1, "user" if turn["role"] == "user" else "agent", turn["content"]) for at, turn in enumerate(said)
    )
    return Window(user, "v1", tuple(turns))


def airline() -> list[Window]:
    """Recorded sessions, without the tools' answers: those are no speech."""
    sessions = lines("replay/airline.jsonl")
    return [window(each["session"], [t for t in each["interactions"] if t["role"] in ROLES]) for each in sessions]


def small_talk() -> list[Window]:
    """Friends chatting, ten turns a window; the first speaker is the user."""
    windows = []
    for each in lines("retrieval/locomo.jsonl"):
        first = each["turns"][0]["speaker"]
        said = [{"role": "user" if t["speaker"] == first else "agent", "content": t["text"]} for t in each["turns"]]
        windows += [window(each["conversation"], said[at : at + 10]) for at in range(0, len(said), 10)]
    return windows


async def learned(learner: LocalLearner, talk: Window) -> tuple[Candidate, ...]:
    return (await learner.extract(talk, Config(), KINDS)).candidates


async def is_captured(embedder: Embedder, preference: str, found: Sequence[Candidate]) -> bool:
    vectors = await embedder.embed([preference, *(each.text for each in found)])
    return bool((vectors[1:] @ vectors[0] >= CAPTURED).any())


def _percent(captured: Sequence[bool]) -> float:
    return 100 * sum(captured) / len(captured)


if __name__ == "__main__":
    for figure in local_learner():
        print(f"{figure.name}: {figure.value:.4g} {figure.unit}")
