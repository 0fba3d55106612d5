"""Learning from a window of turns, and from what many users taught."""

from collections.abc import Sequence
from typing import Protocol

from reflexio.models.config import Config
from reflexio.models.learned import Consolidation, Extraction, Gathered, Generalisation, Neighbourhood, Window
from reflexio.models.learning import Kind


class Learner(Protocol):
    """Finds what is worth keeping. Implementations: with a language model, and without any.

    `name` is shown to people ("local", "openai:gpt-…") and `fingerprint` identifies the prompts or rules; both are
    kept with everything learned. Whether evidence really stands in the window is checked above, not here.
    """

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    async def extract(self, window: Window, config: Config, kinds: frozenset[Kind]) -> Extraction:
        """Candidates of the wanted kinds, for every configured type at once. Only new turns are a source.

        Raises `ProviderRefused` (key or bill), `ProviderUnavailable` (wait), or `UnreadableAnswer` when a model's
        answer cannot be used even after one repair.
        """
        ...

    async def consolidate(self, questions: Sequence[Neighbourhood], config: Config) -> Consolidation:
        """One decision for each question, in order. Only candidates that have neighbours are asked about."""
        ...

    async def generalise(self, gathered: Gathered, config: Config) -> Generalisation:
        """One rule for everybody out of what many users taught, without what only one of them would know.

        None when one of the known rules says it already. Raises as `extract` does.
        """
        ...
