"""What the learner without a model learns from plain sentences in five languages: from those that its rules were
devised on, from those held out, and from traps. The sentences were written before the rules."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reflexio.learners.local.learner import LocalLearner
from reflexio.models.config import Config
from reflexio.models.extraction import Turn, Window
from reflexio.models.learning import Kind
from reflexio.ports.embedding import Embedder
from reflexio.providers.embedding.local import LocalEmbedder
from tests.bench.report import Figure

FOLDER = Path(__file__).parent
NAMES = {"de": "German", "es": "Spanish", "fr": "French", "pt": "Portuguese", "zh": "Chinese"}
KINDS = frozenset((Kind.PROFILE, Kind.USER_PLAYBOOK))


@dataclass(frozen=True)
class Talk:
    """A conversation whose last turn teaches something that contains `gist`, or nothing if that is empty."""

    language: str
    part: str
    is_held_out: bool
    turns: tuple[str, ...]
    gist: str

    @property
    def window(self) -> Window:
        last = len(self.turns) - 1
        return Window("ann", "v1", tuple(self._turn(place, is_new=place == last) for place in range(last + 1)))

    def _turn(self, place: int, *, is_new: bool) -> Turn:
        return Turn(place + 1, "agent" if place % 2 else "user", self.turns[place], is_new=is_new)


def talks(language: str) -> Iterator[Talk]:
    part, place = "", 0
    for line in (FOLDER / f"{language}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            part, place = line.strip("[]"), 0
        elif line and not line.startswith("#"):
            said, _, gist = line.partition(" => ")
            turns = tuple(turn.strip().replace("\\n", "\n") for turn in said.split(" / "))
            yield Talk(language, part, place % 2 == 1 and part != "seen", turns, gist)
            place += 1


async def is_learned(learner: LocalLearner, talk: Talk) -> bool:
    """Whether something with the gist is learned; of a trap, whether anything is."""
    candidates = (await learner.extract(talk.window, Config(), KINDS)).candidates
    return any(talk.gist.casefold() in candidate.content.casefold() for candidate in candidates)


def languages() -> list[Figure]:
    return asyncio.run(_measure())


async def _measure(embedder: Embedder | None = None) -> list[Figure]:
    embedder = embedder or LocalEmbedder()
    try:
        learner = LocalLearner(embedder)
        learned: dict[tuple[str, str], list[bool]] = defaultdict(list)
        for language in NAMES:
            for talk in talks(language):
                half = "traps" if talk.part == "trap" else "held out" if talk.is_held_out else "devised on"
                learned[language, half].append(await is_learned(learner, talk))
    finally:
        await embedder.aclose()
    return [
        *(
            _figure(language, learned[language, half], half)
            for language in NAMES
            for half in ("devised on", "held out")
        ),
        *(_figure(language, learned[language, "traps"], "traps") for language in NAMES),
    ]


def _figure(language: str, learned: list[bool], half: str) -> Figure:
    share = 100 * sum(learned) / len(learned)
    if half == "traps":
        return Figure(f"{NAMES[language]}: traps that taught something", share, "%", 3)
    return Figure(f"{NAMES[language]}: plain sentences learned, {half}", share, "%", 80, more_is_better=True)


if __name__ == "__main__":
    for figure in languages():
        print(f"{figure.name}: {figure.value:.4g} {figure.unit}")
