"""Deletes turns, requests, sessions and users: everywhere, in one transaction, and never more than was named."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from reflexio.errors import NotFound
from reflexio.models.interaction import (
    BulkDeleteResponse,
    ClearUserDataResponse,
    DeleteResponse,
    DeleteSessionResponse,
    ErasureReceipt,
)
from reflexio.models.learning import Kind
from reflexio.ports.clock import Clock
from reflexio.ports.storage import LearningFilter, RequestFilter, Store, Tx
from reflexio.ports.work import Work

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
    store: Store,
    clock: Clock,
    user_id: str,
    withdraw_user: WithdrawUser,
    *,
    withdraw_unsupported: bool = False,
    work: Work | None = None,
) -> ClearUserDataResponse:
    """Deletes all rows of one user, and the user's part in agent playbooks; the response is a receipt of it.

    Jobs of `work` that are about the user alone are cancelled first.
    """
    now = clock.now()
    if work:
        for key in await store.read(lambda tx: tx.erasures.unfinished_jobs(user_id)):
            await work.cancel(key)

    def delete(tx: Tx) -> tuple[dict[str, int], ErasureReceipt, int]:
        tables, names = tx.erasures.count(user_id), tx.erasures.names(user_id)
        withdrawn = withdraw_user(tx, user_id, now, withdraw_unsupported=withdraw_unsupported)
        tx.erasures.remove(user_id)
        counts = {
            "interactions": tx.interactions.remove_all(user_id),
            "requests": tx.requests.remove(RequestFilter(user_id=user_id)),
            "profiles": tx.learnings.remove(LearningFilter(Kind.PROFILE, user_id=user_id, statuses=None)),
            "user_playbooks": tx.learnings.remove(LearningFilter(Kind.USER_PLAYBOOK, user_id=user_id, statuses=None)),
        }
        tx.erasures.remove_empty_pools()
        tx.erasures.remove_unused_names(names)
        receipt = ErasureReceipt.issue(store.org_id, user_id, now, tables)
        tx.erasures.add_receipt(receipt.digest, now)
        return {**counts, **ABSENT}, receipt, withdrawn

    counts, receipt, withdrawn = await store.write(delete)
    message = f"Deleted {sum(counts.values())} row(s)"
    return ClearUserDataResponse(
        deleted_counts=counts, withdrawn_agent_playbooks=withdrawn, message=message, receipt=receipt
    )


@dataclass(frozen=True)
class Verification:
    """What is left of a user by table, and what is wrong with the receipt."""

    leftovers: Mapping[str, int]
    receipt_problem: str = ""

    @property
    def is_erased(self) -> bool:
        return not self.leftovers and not self.receipt_problem


async def verify(store: Store, user_id: str, receipt: ErasureReceipt | None = None) -> Verification:
    """Searches all tables for a user, and checks that this organisation issued the receipt for that user."""

    def search(tx: Tx) -> Verification:
        leftovers = {table: count for table, count in tx.erasures.leftovers(user_id).items() if count}
        problem = ""
        if receipt and not receipt.fits(store.org_id, user_id):
            problem = "The digest does not fit: the receipt was changed, or is about another user or organisation."
        elif receipt and not tx.erasures.has_receipt(receipt.digest):
            problem = "This database did not issue the receipt."
        return Verification(leftovers, problem)

    return await store.read(search)
