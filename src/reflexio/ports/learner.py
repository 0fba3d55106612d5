"""Learning from a window of turns, and from the playbooks of many users."""

from collections.abc import Sequence
from typing import Protocol

from reflexio.models.config import Config
from reflexio.models.learned import Consolidation, Extraction, Gathered, Generalisation, Neighbourhood, Window
from reflexio.models.learning import Kind


class Learner(Protocol):
    """Extracts learnings. There are two implementations: one with a language model, one without.

    `name` is shown to people ("local", "openai:gpt-…") and `fingerprint` identifies the prompts or rules; both are
    stored with every learning. The caller, not the learner, checks that the evidence stands in the window.
    """

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    async def extract(self, window: Window, config: Config, kinds: frozenset[Kind]) -> Extraction:
        """Candidates of the requested kinds, for all configured types in one call. Only new turns are a source.

        Raises `ProviderRefused` (key or bill), `ProviderUnavailable` (wait), or `UnreadableAnswer` when a model's
        answer is unusable even after one repair.
        """
        ...

    async def consolidate(self, questions: Sequence[Neighbourhood], config: Config) -> Consolidation:
        """One decision for each question, in order. Each question is a candidate that has neighbours."""
        ...

    async def generalise(self, gathered: Gathered, config: Config) -> Generalisation:
        """One rule for all users, summarised from the playbooks of one cluster, without private details.

        None when one of the known rules states it already. Raises the errors of `extract`.
        """
        ...
