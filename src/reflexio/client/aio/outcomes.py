"""What came of playbooks that an agent was shown."""

from collections.abc import Sequence

from reflexio.client.aio.calls import Calls
from reflexio.client.answers import build
from reflexio.models.outcome import Outcome, RecordOutcomeRequest
from reflexio.models.profile import UpdateResponse


class OutcomeCalls(Calls):
    """What playbooks were worth."""

    async def record_outcome(
        self,
        outcome: Outcome,
        *,
        user_playbook_ids: Sequence[int] = (),
        agent_playbook_ids: Sequence[int] = (),
    ) -> UpdateResponse:
        """Counts that playbooks helped, hurt, or were learned once more; unknown ids are passed over."""
        told = build(
            RecordOutcomeRequest,
            {
                "outcome": outcome,
                "user_playbook_ids": list(user_playbook_ids),
                "agent_playbook_ids": list(agent_playbook_ids),
            },
        )
        done = await self._call("POST", "/api/record_outcome", UpdateResponse, told, repeatable=False)
        self._cache.forget("agent_playbooks")
        return done
