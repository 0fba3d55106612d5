"""Which findings are kept: the strongest few, each said once."""

from collections.abc import Sequence

from reflexio.learners.local.finding import Finding
from reflexio.learners.local.words import meaning, shared

MOST = 3
SAME = 0.8


def chosen(findings: Sequence[Finding]) -> list[Finding]:
    """At most `MOST`, strongest first; of equals, the one told first."""
    kept: list[Finding] = []
    for finding in sorted(findings, key=lambda each: -each.weight):
        if len(kept) < MOST and not any(_is_same(finding, other) for other in kept):
            kept.append(finding)
    return kept


def _is_same(one: Finding, other: Finding) -> bool:
    words, others = meaning(one.candidate.content), meaning(other.candidate.content)
    return one.candidate.kind is other.candidate.kind and shared(words, others) >= SAME
