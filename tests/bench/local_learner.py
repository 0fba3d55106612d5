"""The learner without a model: how many preferences it captures, how much else it says, and how fast it is."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from reflexio.learners.local.learner import LocalLearner
from reflexio.models.config import Config
from reflexio.models.extraction import ExtractedLearning, Turn, Window
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
    conversations = lines("retrieval/prefeval.jsonl")
    windows = [window(conversation["user"], conversation["turns"]) for conversation in conversations]
    learner = LocalLearner(embedder)
    began = time.perf_counter()
    learnings = [await learned(learner, conversation) for conversation in windows]
    taken = time.perf_counter() - began
    preferences = [conversation["preference"] for conversation in conversations]
    captured = [await is_captured(embedder, *pair) for pair in zip(preferences, learnings, strict=True)]
    return [
        Figure("preferences captured, half it was devised on", _percent(captured[::2]), "%", 60, more_is_better=True),
        Figure("preferences captured, held-out half", _percent(captured[1::2]), "%", 60, more_is_better=True),
        Figure("learnings a conversation, mean", float(np.mean([len(candidates) for candidates in learnings])), "", 3),
        Figure("learnings a conversation, most", max(len(candidates) for candidates in learnings), "", 12),
        Figure("windows a second, one after the other", len(windows) / taken, "/s", 15, more_is_better=True),
    ]


async def _alarms(embedder: Embedder) -> list[Figure]:
    learner = LocalLearner(embedder)
    service = [len(await learned(learner, session)) for session in airline()]
    chat = [len(await learned(learner, session)) for session in small_talk()]
    return [
        Figure("learnings a session of customer service (airline)", float(np.mean(service)), ""),
        Figure("learnings a window of ten turns among friends (LoCoMo)", float(np.mean(chat)), ""),
    ]


def window(user: str, messages: Sequence[dict[str, Any]]) -> Window:
    turns = (
        Turn(at + 1, "user" if turn["role"] == "user" else "agent", turn["content"]) for at, turn in enumerate(messages)
    )
    return Window(user, "v1", tuple(turns))


def airline() -> list[Window]:
    """Recorded sessions, without the tools' answers: those are no speech."""
    sessions = lines("replay/airline.jsonl")
    return [
        window(session["session"], [turn for turn in session["interactions"] if turn["role"] in ROLES])
        for session in sessions
    ]


def small_talk() -> list[Window]:
    """Friends chatting, ten turns a window; the first speaker is the user."""
    windows = []
    for conversation in lines("retrieval/locomo.jsonl"):
        first = conversation["turns"][0]["speaker"]
        messages = [
            {"role": "user" if turn["speaker"] == first else "agent", "content": turn["text"]}
            for turn in conversation["turns"]
        ]
        windows += [window(conversation["conversation"], messages[at : at + 10]) for at in range(0, len(messages), 10)]
    return windows


async def learned(learner: LocalLearner, session: Window) -> tuple[ExtractedLearning, ...]:
    return (await learner.extract(session, Config(), KINDS)).candidates


async def is_captured(embedder: Embedder, preference: str, candidates: Sequence[ExtractedLearning]) -> bool:
    vectors = await embedder.embed([preference, *(candidate.text for candidate in candidates)])
    return bool((vectors[1:] @ vectors[0] >= CAPTURED).any())


def _percent(captured: Sequence[bool]) -> float:
    return 100 * sum(captured) / len(captured)


if __name__ == "__main__":
    for figure in local_learner():
        print(f"{figure.name}: {figure.value:.4g} {figure.unit}")
