"""What waits for people: reviews, playbooks that say the same or the opposite, and playbooks that nobody needed."""

from collections.abc import Iterator
from dataclasses import dataclass

from reflexio.aggregation.near_duplicates import near_pairs
from reflexio.doctor.finding import Finding
from reflexio.models.learning import Kind, PlaybookStatus
from reflexio.models.paging import Page
from reflexio.ports.storage import LearningFilter, TimeRange, Tx

DAY = 86_400
LONGEST_REVIEW = 7 * DAY
UNUSED_AFTER = 30 * DAY
MOST_COMPARED = 200
ALIKE = 0.9
"""The cosine from which two playbooks are told to say nearly the same."""
PENDING = LearningFilter(Kind.AGENT_PLAYBOOK, reviews=(PlaybookStatus.PENDING,))
APPROVED = LearningFilter(Kind.AGENT_PLAYBOOK, reviews=(PlaybookStatus.APPROVED,))


@dataclass(frozen=True)
class ReviewState:
    """What of one organisation waits for people. Numbers of playbooks stand in pairs."""

    pending: int
    overdue: int
    alike: list[tuple[int, int]]
    opposite: list[tuple[int, int]]
    approved: int
    unused: list[int]
    is_use_known: bool


def read_review_state(tx: Tx, model: str, now: int) -> ReviewState:
    old = TimeRange(end=now - LONGEST_REVIEW)
    overdue = LearningFilter(Kind.AGENT_PLAYBOOK, reviews=(PlaybookStatus.PENDING,), within=old)
    approved = tx.learnings.page(APPROVED, Page(MOST_COMPARED)).rows
    pairs = near_pairs(tx, model, approved)
    opposite = sorted((pair.first.id, pair.second.id) for pair in pairs if pair.contradicts)
    alike = sorted(
        (pair.first.id, pair.second.id) for pair in pairs if pair.similarity >= ALIKE and not pair.contradicts
    )
    shown = tx.exposures.counts(Kind.AGENT_PLAYBOOK, [row.public_id for row in approved], 1)
    unused = [row.id for row in approved if row.public_id not in shown and row.created_at < now - UNUSED_AFTER]
    return ReviewState(
        tx.learnings.count(PENDING),
        tx.learnings.count(overdue),
        alike,
        opposite,
        tx.learnings.count(APPROVED),
        unused,
        bool(shown),
    )


def review_findings(part: str, state: ReviewState) -> Iterator[Finding]:
    """Each of them with what to do. Only what holds people up, or misleads agents, is out of order."""
    waiting = f"{state.pending} agent playbooks wait for review"
    if state.overdue:
        remedy = "Decide about them with `reflexio review` or in the dashboard: until then nobody is helped by them."
        yield Finding(part, False, f"{waiting}, {state.overdue} of them for more than a week", remedy)
    else:
        yield Finding(part, True, waiting, "`reflexio review` goes through them." if state.pending else "")
    if state.opposite:
        detail = f"Approved playbooks advise the opposite: {_listed(state.opposite)}"
        yield Finding(part, False, detail, "Reject one of each pair, or say in both when they apply.")
    if state.alike:
        detail = f"Approved playbooks say nearly the same: {_listed(state.alike)}"
        yield Finding(part, True, detail, "Reject the weaker one of each pair: both take room in prompts.")
    if state.unused and state.is_use_known:
        numbers = ", ".join(map(str, state.unused[:5]))
        detail = f"{len(state.unused)} approved playbooks of more than 30 days were in no prompt, such as {numbers}"
        yield Finding(part, True, detail, "Look whether their trigger is too narrow; delete what nobody needs.")
    elif state.unused:
        detail = "No turn names the learnings of its prompt, so it is not known which playbooks are used"
        yield Finding(part, True, detail, "Publish the agent's turns with retrieved_learnings.")


def _listed(pairs: list[tuple[int, int]]) -> str:
    shown = ", ".join(f"{one} and {other}" for one, other in pairs[:5])
    return f"{shown}, and {len(pairs) - 5} more pairs" if len(pairs) > 5 else shown
