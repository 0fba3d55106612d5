"""What happened to a learning, in words that a person reads: who did what, when and why."""

from dataclasses import dataclass

from reflexio.models.review import NAMED_REVIEWER
from reflexio.ports.storage import LineageEvent

WORDS = {
    "learned": "Learned",
    "aggregated": "Made of user playbooks",
    "optimised": "Reworded by the optimiser",
    "edited": "Edited",
    "undone": "Decision taken back",
    "archived": "Archived",
    "restored": "Taken back into use",
    "superseded": "Replaced by another",
    "withdrawn": "Withdrawn: its support is gone",
    "merge": "Merged into another",
    "replace": "Replaced by a newer one",
    "drop": "Dropped",
}
DECISIONS = {"approved": "Approved", "rejected": "Rejected", "pending": "Put back into review"}


@dataclass(frozen=True)
class HistoryEntry:
    """One event. `tone` is good, bad or empty; `noted` is a reviewer that the request named besides the key's owner."""

    words: str
    by: str
    at: int
    reason: str
    tone: str = ""
    noted: str = ""


def describe(event: LineageEvent) -> HistoryEntry:
    """An event in words."""
    if event.op == "reviewed":
        words = DECISIONS.get(event.to_status, f"Set to {event.to_status}")
        tone = {"approved": "good", "rejected": "bad"}.get(event.to_status, "")
    else:
        words, tone = WORDS.get(event.op, event.op.replace("_", " ").capitalize()), ""
    by = "the local learner" if event.actor == "local" else event.actor
    return HistoryEntry(words, by, event.at, event.reason, tone, str(event.details.get(NAMED_REVIEWER, "")))
