"""Outcome: what came of playbooks that somebody was shown is counted on the playbooks themselves."""

import dataclasses

from reflexio.models.learning import Kind, Learning
from reflexio.models.outcome import Outcome, RecordOutcomeRequest
from reflexio.models.profile import UpdateResponse
from reflexio.ports.storage import Store, Tx


async def record(store: Store, asked: RecordOutcomeRequest) -> UpdateResponse:
    """Counts in one transaction, so that no count of two at once is lost; unknown ids are passed over."""
    wanted = dict.fromkeys(asked.user_playbook_ids, Kind.USER_PLAYBOOK)
    wanted |= dict.fromkeys(asked.agent_playbook_ids, Kind.AGENT_PLAYBOOK)

    def count(tx: Tx) -> int:
        found = [each for each in tx.learnings.many(list(wanted)).values() if each.kind is wanted[each.id]]
        for each in found:
            tx.learnings.replace(_counted(each, asked.outcome))
        return len(found)

    return UpdateResponse(msg=f"Counted {await store.write(count)} playbook(s)")


def _counted(learning: Learning, outcome: Outcome) -> Learning:
    known = learning.details.get("outcomes", {})
    counted = {**known, outcome: known.get(outcome, 0) + 1}
    return dataclasses.replace(learning, details={**learning.details, "outcomes": counted})
