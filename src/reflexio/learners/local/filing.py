"""Under which type a learning is filed: the one whose name and definition are nearest to it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reflexio.models.config import Config
from reflexio.models.learned import Candidate
from reflexio.models.learning import Kind
from reflexio.ports.embedding import Embedder

MOST_REMEMBERED = 1000

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class Drawer:
    """A type: what it is called, and what belongs in it."""

    name: str
    label: str


class Cabinet:
    """Files candidates. Remembers the vectors of the types, which are the same from window to window."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._labels: dict[str, Vector] = {}

    async def file(self, candidates: Sequence[Candidate], config: Config) -> list[Candidate]:
        """Each under its type, in order. A kind with no type takes nothing; of types equally near, the first."""
        by_kind = {kind: drawers(config, kind) for kind in (Kind.PROFILE, Kind.USER_PLAYBOOK)}
        kept = [each for each in candidates if by_kind[each.kind]]
        unsure = [each for each in kept if len(by_kind[each.kind]) > 1]
        await self._remember({drawer.label for each in unsure for drawer in by_kind[each.kind]})
        texts = list(dict.fromkeys(each.text for each in unsure))
        vectors = dict(zip(texts, await self._embedder.embed(texts), strict=True)) if texts else {}
        return [replace(each, name=self._nearest(by_kind[each.kind], vectors.get(each.text)).name) for each in kept]

    def _nearest(self, choice: Sequence[Drawer], vector: Vector | None) -> Drawer:
        # A request to forget stands under both kinds with the same text: one kind may be sure where the other is not.
        if len(choice) == 1 or vector is None:
            return choice[0]
        return max(choice, key=lambda each: float(self._labels[each.label] @ vector))

    async def _remember(self, labels: set[str]) -> None:
        new = sorted(labels - self._labels.keys())
        if not new:
            return
        vectors = await self._embedder.embed(new)
        if len(self._labels) + len(new) > MOST_REMEMBERED:
            self._labels = {label: self._labels[label] for label in labels if label in self._labels}
        self._labels |= dict(zip(new, vectors, strict=True))


def drawers(config: Config, kind: Kind) -> list[Drawer]:
    if kind is Kind.PROFILE:
        return [
            Drawer(each.extractor_name, _label(each.extractor_name, each.extraction_definition_prompt))
            for each in config.profile_extractor_configs
        ]
    return [
        Drawer(each.playbook_name, _label(each.playbook_name, each.playbook_definition_prompt))
        for each in config.playbook_configs
    ]


def _label(name: str, definition: str) -> str:
    return f"{name.replace('_', ' ').replace('-', ' ')}: {' '.join(definition.split())}"
