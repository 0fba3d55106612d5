"""Review: what waits for a person, and what that person decides."""

from collections.abc import Sequence

from reflexio.client.aio.calls import Calls
from reflexio.client.answers import build
from reflexio.models.review import (
    GetReviewQueueRequest,
    GetReviewQueueResponse,
    ReviewAgentPlaybooksRequest,
    ReviewResponse,
    UndoReviewRequest,
)
from reflexio.models.status import PlaybookStatus


class ReviewCalls(Calls):
    """Review."""

    async def get_review_queue(
        self,
        *,
        limit: int | None = None,
        agent_playbook_id: int | None = None,
        playbook_name: str | None = None,
        agent_version: str | None = None,
        cursor: str | None = None,
    ) -> GetReviewQueueResponse:
        """Agent playbooks that wait for a decision, each with evidence, support, disagreement and difference.

        With `agent_playbook_id` that one, whatever was decided about it. Raises NotFound when there is none.
        """
        asked = build(
            GetReviewQueueRequest,
            {
                "limit": limit,
                "agent_playbook_id": agent_playbook_id,
                "playbook_name": playbook_name,
                "agent_version": agent_version,
                "cursor": cursor,
            },
        )
        return await self._call("POST", "/api/get_review_queue", GetReviewQueueResponse, asked)

    async def review_agent_playbooks(
        self,
        agent_playbook_ids: Sequence[int],
        *,
        playbook_status: PlaybookStatus | str,
        reviewer: str | None = None,
        reason: str | None = None,
    ) -> ReviewResponse:
        """Approves, rejects or reopens several agent playbooks, all of them or none. Who, when and why are kept.

        Approving one retires those that it says it replaces. `update_agent_playbook` edits and approves at once.
        """
        asked = build(
            ReviewAgentPlaybooksRequest,
            {
                "agent_playbook_ids": list(agent_playbook_ids),
                "playbook_status": playbook_status,
                "reviewer": reviewer,
                "reason": reason,
            },
        )
        return await self._review("/api/review_agent_playbooks", asked)

    async def undo_review(
        self, agent_playbook_ids: Sequence[int], *, reviewer: str | None = None, reason: str | None = None
    ) -> ReviewResponse:
        """Takes the last decision about each back, with the edit that came with it; what it had retired stands again.

        All of them or none: raises Conflict where there is no decision to take back.
        """
        asked = build(
            UndoReviewRequest,
            {"agent_playbook_ids": list(agent_playbook_ids), "reviewer": reviewer, "reason": reason},
        )
        return await self._review("/api/undo_review", asked)

    async def _review(self, path: str, asked: ReviewAgentPlaybooksRequest | UndoReviewRequest) -> ReviewResponse:
        done = await self._call("POST", path, ReviewResponse, asked, repeatable=False)
        self._cache.forget("agent_playbooks")
        return done
