"""What the local learner learns from plain English statements in words that its patterns do not know."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from reflexio.learners.local.learner import LocalLearner
from reflexio.models.config import Config
from reflexio.models.extraction import Turn, Window
from reflexio.models.learning import Kind
from reflexio.ports.embedding import Embedder
from reflexio.providers.embedding.local import LocalEmbedder
from tests.bench.report import Figure

FILE = Path(__file__).with_name("statements.txt")
KINDS = frozenset((Kind.PROFILE, Kind.USER_PLAYBOOK))


def parts() -> dict[str, list[tuple[str, str]]]:
    """By part: words of what must be learned, and what is said."""
    read: dict[str, list[tuple[str, str]]] = {}
    part = ""
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            part = line.strip("[]")
        elif line and not line.startswith("#"):
            gist, _, said = line.rpartition(" ; ")
            read.setdefault(part, []).append((gist, said))
    return read


async def learned(embedder: Embedder, lines: Sequence[tuple[str, str]]) -> list[str]:
    """The lines from which what is wanted was learned; of idle lines, those that taught anything."""
    learner = LocalLearner(embedder)
    found = []
    for gist, said in lines:
        window = Window("ann", "v1", (Turn(1, "user", said),))
        candidates = (await learner.extract(window, Config(), KINDS)).candidates
        if any(gist.casefold() in candidate.content.casefold() for candidate in candidates):
            found.append(said)
    return found


def statements() -> list[Figure]:
    return asyncio.run(_measure())


async def _measure() -> list[Figure]:
    embedder = LocalEmbedder()
    try:
        shares = {name: 100 * len(await learned(embedder, lines)) / len(lines) for name, lines in parts().items()}
    finally:
        await embedder.aclose()
    return [
        Figure(f"statements, {name}: learned", share, "%", 80, more_is_better=True)
        if name.startswith("learn")
        else Figure(f"statements, {name}: taught something", share, "%", 3)
        for name, share in shares.items()
    ]


if __name__ == "__main__":
    for figure in statements():
        print(f"{figure.name}: {figure.value:.3g} %")
