"""Judging what an assistant did, and proposing better wordings for its playbook."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from reflexio.models.learned import Spend
from reflexio.models.rollout import Comparison, Guidance, Message, Scene, Trial


@dataclass(frozen=True)
class ComparisonReply:
    """The judgement on two replays, and its cost."""

    comparison: Comparison
    spend: Spend = field(default_factory=Spend)


@dataclass(frozen=True)
class RewordReply:
    """A proposed wording, and its cost. Empty content means that there is no proposal."""

    content: str
    spend: Spend = field(default_factory=Spend)


@dataclass(frozen=True)
class RewordRequest:
    """The current wording, its results in some scenarios, and the wordings that were tried before."""

    guidance: Guidance
    trials: tuple[Trial, ...]
    tried: tuple[Trial, ...] = ()


class Critic(Protocol):
    """Raises what `Chat.ask` raises, with the spend so far."""

    @property
    def name(self) -> str: ...

    async def compare(
        self, scene: Scene, trigger: str, first: Sequence[Message], second: Sequence[Message]
    ) -> ComparisonReply:
        """Which of two replays of a scenario serves the user better. The critic does not know which wording made
        which replay."""
        ...

    async def reword(self, request: RewordRequest) -> RewordReply: ...
