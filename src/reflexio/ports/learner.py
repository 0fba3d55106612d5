"""What learning and optimisation ask of a learner and a critic."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from reflexio.models.config import Config
from reflexio.models.extraction import (
    ClusterToSummarise,
    Consolidation,
    Extraction,
    Neighbourhood,
    Spend,
    Summary,
    Window,
)
from reflexio.models.learning import Kind
from reflexio.models.optimisation import ChatMessage, Comparison, Guidance, Scenario, Trial


class Learner(Protocol):
    """Extracts learnings. There are two implementations: one with a language model, one without.

    `name` is shown to people ("local", "openai:gpt-…") and `fingerprint` identifies the prompts or rules; both are
    stored with every learning. The caller, not the learner, checks that the evidence stands in the window.
    """

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    async def check(self) -> Spend:
        """Asks the model one tiny question, if there is a model. Raises the errors of `extract`."""

    async def extract(self, window: Window, config: Config, kinds: frozenset[Kind]) -> Extraction:
        """Candidates of the requested kinds, for all configured types in one call. Only new turns are a source.

        Raises `ProviderRefused` (key or bill), `ProviderUnavailable` (wait), or `UnreadableAnswer` when a model's
        answer is unusable even after one repair: `ContextTooLong` when the model can read only a shorter window.
        """

    async def consolidate(self, questions: Sequence[Neighbourhood], config: Config) -> Consolidation:
        """One decision for each question, in order. Each question is a candidate that has neighbours."""

    async def summarise(self, gathered: ClusterToSummarise, config: Config) -> Summary:
        """One rule for all users, summarised from the playbooks of one cluster, without private details.

        None when one of the known rules states it already. Raises the errors of `extract`.
        """


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
        self, scene: Scenario, trigger: str, first: Sequence[ChatMessage], second: Sequence[ChatMessage]
    ) -> ComparisonReply:
        """Which of two replays of a scenario serves the user better. The critic does not know which wording made
        which replay."""

    async def reword(self, request: RewordRequest) -> RewordReply: ...
