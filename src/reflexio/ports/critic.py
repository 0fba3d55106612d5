"""Judging what an assistant did, and finding better words for what it should do."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from reflexio.models.learned import Spend
from reflexio.models.rollout import Comparison, Guidance, Message, Scene, Trial


@dataclass(frozen=True)
class Compared:
    comparison: Comparison
    spend: Spend = field(default_factory=Spend)


@dataclass(frozen=True)
class Reworded:
    """Without content there is no proposal."""

    content: str
    spend: Spend = field(default_factory=Spend)


@dataclass(frozen=True)
class Rewrite:
    """What a rewriter goes by: the wording in force, how it did in some scenes, and wordings that were tried before."""

    guidance: Guidance
    trials: tuple[Trial, ...]
    tried: tuple[Trial, ...] = ()


class Critic(Protocol):
    """Raises what `Chat.ask` raises, with the spend so far."""

    @property
    def name(self) -> str: ...

    async def compare(
        self, scene: Scene, trigger: str, first: Sequence[Message], second: Sequence[Message]
    ) -> Compared:
        """Which of two replays of a scene serves the user better. It is not told which wording made which."""
        ...

    async def reword(self, rewrite: Rewrite) -> Reworded: ...
