"""What people say in many ways: corrections, facts, changed minds and traps, as the local learner takes them.

The set is `sayings.txt`. Its even lines were worked with, the odd ones are held out; both are reported.
`python -m tests.bench.sayings worked` also prints what went wrong in the half that was worked with.
"""

import asyncio
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from reflexio.language.choices import other_choice
from reflexio.learners.local.learner import LocalLearner
from reflexio.models.config import Config
from reflexio.models.extraction import Decision, ExtractedLearning, Neighbour, Neighbourhood, Turn, Window
from reflexio.models.learning import Kind, Learning, Scope
from reflexio.ports.embedding import Embedder
from reflexio.providers.embedding.local import LocalEmbedder
from reflexio.retrieval.scope import ScopeClassifier
from tests.bench.report import Figure

FILE = Path(__file__).with_name("sayings.txt")
BOTH = frozenset((Kind.PROFILE, Kind.USER_PLAYBOOK))
NEAR, MOST_NEIGHBOURS = 0.4, 5
KINDS = {"fact": Kind.PROFILE, "rule": Kind.USER_PLAYBOOK}
SCOPES = {"always": Scope.ALWAYS, "relevant": Scope.WHEN_RELEVANT}
WANTED = {"learn": 85.0, "changes": 85.0, "traps": 95.0}


@cache
def parts() -> dict[str, list[str]]:
    """The lines of the file by their part."""
    read: dict[str, list[str]] = {}
    part = ""
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if heading := re.fullmatch(r"\[(\w+)\]", line):
            part = heading[1]
        elif line and not line.startswith("#"):
            read.setdefault(part, []).append(line)
    return read


class Memory:
    """What is known of one user: it takes session after session as the worker does, without a database."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._learner = LocalLearner(embedder)
        self._scopes = ScopeClassifier(embedder)
        self._turns: list[Turn] = []
        self.rows: list[Learning] = []

    async def take(self, *messages: str, session: str) -> None:
        """Messages of user and agent by turns, ending with one of the user."""
        roles = ("user", "agent") if len(messages) % 2 else ("agent", "user")
        first = len(self._turns) + 1
        new = [
            Turn(first + place, "user" if roles[place % 2] == "user" else "agent", text, session=session)
            for place, text in enumerate(messages)
        ]
        window = Window("ann", "v1", (*(replace(turn, is_new=False) for turn in self._turns), *new))
        self._turns += new
        candidates = (await self._learner.extract(window, Config(), BOTH)).candidates
        for candidate in await self._scopes.complete(candidates):
            await self._keep(candidate)

    async def _keep(self, candidate: ExtractedLearning) -> None:
        near = await self._neighbours(candidate)
        (decision,) = (await self._learner.consolidate([Neighbourhood(candidate, near)], Config())).decisions or [
            Decision("add")
        ]
        if decision.action == "drop":
            return
        self.rows = [row for row in self.rows if row.id not in decision.targets]
        if decision.action != "forget":
            number = len(self._turns) * 100 + len(self.rows)
            content, trigger = decision.content or candidate.content, decision.trigger or candidate.trigger
            row = Learning(candidate.kind, content, id=number, name=candidate.name, trigger=trigger)
            self.rows.append(replace(row, scope=candidate.scope or Scope.WHEN_RELEVANT))

    async def _neighbours(self, candidate: ExtractedLearning) -> tuple[Neighbour, ...]:
        rows = [row for row in self.rows if row.kind is candidate.kind]
        if not rows:
            return ()
        vectors = await self._embedder.embed([candidate.text, *(row.text for row in rows)])
        cosines = (vectors[1:] @ vectors[0]).tolist()
        pairs = sorted(zip(rows, cosines, strict=True), key=lambda pair: -pair[1])[:MOST_NEIGHBOURS]
        return tuple(
            Neighbour(row, cosine)
            for row, cosine in pairs
            if cosine >= NEAR or (not row.trigger and other_choice(candidate.content, row.content))
        )


def spoken(line: str) -> list[str]:
    """What is said, after its context if one is named: "parcel > Check first."."""
    contexts = dict(entry.split(": ", 1) for entry in parts()["contexts"])
    name, arrow, said = line.strip().partition(" > ")
    return [*contexts[name].split(" > "), said] if arrow and name in contexts else [line.strip()]


def fields(line: str, count: int) -> list[str]:
    return [field.strip() for field in line.split(" ; ", count - 1)]


async def wrong_learning(embedder: Embedder, line: str) -> str:
    """What is wrong with what is learned from one way to say something; empty when nothing is."""
    kind, scope, trigger, words, said = fields(line, 5)
    memory = Memory(embedder)
    await memory.take(*spoken(said), session="a")
    rows = [row for row in memory.rows if row.kind is KINDS[kind]]
    present = [word.strip().lower() for word in words.split(",") if not word.strip().startswith("!")]
    absent = [word.strip()[1:].lower() for word in words.split(",") if word.strip().startswith("!")]
    text = " ".join(row.content for row in rows).lower()
    if not rows or not all(word in text for word in present) or any(word in text for word in absent):
        return f"learned {[row.content for row in memory.rows]}"
    row = next(row for row in rows if present[0] in row.content.lower())
    if trigger != "any" and bool(row.trigger) != (trigger == "yes"):
        return f"trigger {row.trigger!r}"
    if scope != "any" and row.scope is not SCOPES[scope]:
        return f"scope {row.scope.value} of {row.content!r}, trigger {row.trigger!r}"
    return ""


async def wrong_change(embedder: Embedder, line: str) -> str:
    """The same for one changed mind: between two sessions, and within one session in one window."""
    stays, goes, said = fields(line, 3)
    first, second = ([*spoken(part)] for part in re.split(" >> " if " >> " in said else " > ", said, maxsplit=1))
    apart, together = Memory(embedder), Memory(embedder)
    await apart.take(*first, session="a")
    await apart.take(*second, session="b")
    await together.take(*first, "Noted.", *second, session="a")
    for where, memory in (("between sessions", apart), ("in one window", together)):
        contents = [row.content for row in memory.rows]
        text = "\n".join(contents).lower()
        is_empty = not contents and "nothing" in stays.split("|")
        if not is_empty and not any(word.strip().lower() in text for word in stays.split("|")):
            return f"{where}: {contents}"
        goes_too = goes.removeprefix("+").strip().lower()
        if (goes_too in text) is not goes.startswith("+"):
            return f"{where}: {contents}"
        if any("asked again" in content for content in contents):
            return f"{where}: {contents}"
    return ""


async def wrong_alarm(embedder: Embedder, line: str) -> str:
    memory = Memory(embedder)
    await memory.take(*spoken(line), session="a")
    return f"learned {[row.content for row in memory.rows]}" if memory.rows else ""


CHECKS = {"learn": wrong_learning, "changes": wrong_change, "traps": wrong_alarm}


async def mistakes(embedder: Embedder, part: str, lines: Sequence[str]) -> list[tuple[str, str]]:
    """The lines of one part that went wrong, and how."""
    checked = [(line, await CHECKS[part](embedder, line)) for line in lines]
    return [(line, mistake) for line, mistake in checked if mistake]


def sayings() -> list[Figure]:
    return asyncio.run(_measure())


async def _measure() -> list[Figure]:
    embedder = LocalEmbedder()
    try:
        return [figure for part in CHECKS for figure in await _figures(embedder, part)]
    finally:
        await embedder.aclose()


async def _figures(embedder: Embedder, part: str) -> list[Figure]:
    names = {"learn": "corrections and facts learned", "changes": "changed minds", "traps": "traps passed in silence"}
    return [
        Figure(
            f"{names[part]}, {half} ({len(lines)})",
            100 * (1 - len(await mistakes(embedder, part, lines)) / len(lines)),
            "%",
            WANTED[part],
            more_is_better=True,
        )
        for half, lines in halves(part)
    ]


def halves(part: str) -> Iterator[tuple[str, list[str]]]:
    yield "half it was worked with", parts()[part][::2]
    yield "held-out half", parts()[part][1::2]


async def _print_mistakes(half: int) -> None:
    embedder = LocalEmbedder()
    for part in CHECKS:
        lines = parts()[part][half::2]
        for line, mistake in (found := await mistakes(embedder, part, lines)):
            print(f"[{part}] {line}\n    {mistake}")
        print(f"== {part}: {len(found)} of {len(lines)} wrong")
    await embedder.aclose()


if __name__ == "__main__":
    if sys.argv[1:] == ["worked"]:
        asyncio.run(_print_mistakes(0))
    elif sys.argv[1:] == ["held-out"]:
        asyncio.run(_print_mistakes(1))
    else:
        for figure in sayings():
            print(f"{figure.name}: {figure.value:.4g} {figure.unit}")
