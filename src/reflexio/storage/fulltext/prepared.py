"""The terms of texts that a write indexes, made outside of it when they are long: every writer waits for a write."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from reflexio.storage.fulltext.index import stored_terms

MADE_INSIDE = 20_000
"""Letters of texts whose terms one write makes itself, in some 10 ms."""
INDEXED_INSIDE = 500_000
"""Letters that one write adds to the index, in some 50 ms. What exceeds them is indexed in the background."""


class TermsMissing(Exception):
    """A write needs the terms of these texts first."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__()
        self.texts = texts


@dataclass
class PreparedTerms:
    """The terms of one write. A write that has met texts without terms must be undone and made again with them."""

    known: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    _letters: int = 0
    _indexed: int = 0

    def fits(self, texts: Sequence[str]) -> bool:
        """Whether these texts are indexed by this write."""
        self._indexed += sum(map(len, texts))
        return self._indexed <= INDEXED_INSIDE

    def of(self, text: str) -> str | None:
        """The terms of a text; None when they are to be made before the write."""
        if text in self.known:
            return self.known[text]
        self._letters += len(text)
        if self._letters <= MADE_INSIDE:
            return stored_terms(text)
        self.missing.append(text)
        return None

    def check(self) -> None:
        """Raises TermsMissing."""
        if self.missing:
            raise TermsMissing(self.missing)


def terms_of(texts: Sequence[str]) -> dict[str, str]:
    return {text: stored_terms(text) for text in texts}
