"""What a rule found, before it is filed under a type: a candidate and how much it deserves one of the few places."""

from dataclasses import dataclass

from reflexio.learners.local.sentences import Sentence
from reflexio.models.learned import Candidate, Quote


@dataclass(frozen=True)
class Finding:
    weight: float
    candidate: Candidate


def quotes(*sentences: Sentence | None) -> tuple[Quote, ...]:
    """The words as they stand, each once."""
    return tuple(dict.fromkeys(Quote(each.turn.id, each.text) for each in sentences if each))
