"""Deletes turns, requests, sessions and users: everywhere, in one transaction, and never more than was named."""

from collections.abc import Sequence
from typing import Protocol

from reflexio.errors import NotFound
from reflexio.models.interaction import (
    BulkDeleteResponse,
    ClearUserDataResponse,
    DeleteResponse,
    DeleteSessionResponse,
)
from reflexio.models.learning import Kind
from reflexio.ports.clock import Clock
from reflexio.ports.storage import LearningFilter, RequestFilter, Store, Tx

ABSENT = {"session_outcomes": 0, "purged_profiles": 0, "purged_user_playbooks": 0}
"""Counts that callers expect: sessions have no outcomes here, and rows are deleted, never blanked."""


class WithdrawUser(Protocol):
    """Removes a user's part in agent playbooks; returns how many of them were withdrawn altogether."""

    def __call__(self, tx: Tx, user_id: str, now: int, *, withdraw_unsupported: bool) -> int: ...


async def delete_interaction(store: Store, user_id: str, interaction_id: int) -> DeleteResponse:
    if not await store.write(lambda tx: tx.interactions.remove(user_id, interaction_id)):
        raise NotFound(f"User {user_id!r} has none of that id.", what="interaction", id=interaction_id)
    return DeleteResponse(message="Deleted")


async def delete_request(store: Store, request_id: str) -> DeleteResponse:
    if not await store.write(lambda tx: tx.requests.remove(RequestFilter(request_id=request_id))):
        raise NotFound(what="request", id=request_id)
    return DeleteResponse(message="Deleted")


async def delete_requests(store: Store, request_ids: Sequence[str]) -> BulkDeleteResponse:
    count = await store.write(lambda tx: tx.requests.remove_ids(request_ids))
    return BulkDeleteResponse(deleted_count=count, message=f"Deleted {count} request(s)")


async def delete_session(store: Store, session_id: str) -> DeleteSessionResponse:
    count = await store.write(lambda tx: tx.requests.remove(RequestFilter(session_id=session_id)))
    return DeleteSessionResponse(deleted_requests_count=count, message=f"Deleted {count} request(s)")


async def delete_all_interactions(store: Store) -> BulkDeleteResponse:
    def delete(tx: Tx) -> int:
        count = tx.interactions.remove_all()
        tx.requests.remove(RequestFilter())
        return count

    count = await store.write(delete)
    return BulkDeleteResponse(deleted_count=count, message=f"Deleted {count} interaction(s)")


async def delete_user(
    store: Store, clock: Clock, user_id: str, withdraw_user: WithdrawUser, *, withdraw_unsupported: bool = False
) -> ClearUserDataResponse:
    """Deletes all rows of one user and the user's part in agent playbooks."""
    now = clock.now()

    def delete(tx: Tx) -> tuple[dict[str, int], int]:
        withdrawn = withdraw_user(tx, user_id, now, withdraw_unsupported=withdraw_unsupported)
        counts = {
            "interactions": tx.interactions.remove_all(user_id),
            "requests": tx.requests.remove(RequestFilter(user_id=user_id)),
            "profiles": tx.learnings.remove(LearningFilter(Kind.PROFILE, user_id=user_id, statuses=None)),
            "user_playbooks": tx.learnings.remove(LearningFilter(Kind.USER_PLAYBOOK, user_id=user_id, statuses=None)),
        }
        counts.update(ABSENT)
        tx.users.remove(user_id)
        tx.windows.forget(user_id)
        tx.operations.forget_user(user_id)
        tx.optimisations.forget_user(user_id)
        return counts, withdrawn

    counts, withdrawn = await store.write(delete)
    message = f"Deleted {sum(counts.values())} row(s)"
    return ClearUserDataResponse(deleted_counts=counts, withdrawn_agent_playbooks=withdrawn, message=message)
