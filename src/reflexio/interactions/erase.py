"""Deletes turns, requests, sessions and users: everywhere, and never more than was named.

Few rows are deleted in one transaction and many in several: every other writer waits for each of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from reflexio.ports.storage import LearningFilter, RemovedRequests, RequestFilter, Store, Tx, UnfinishedErasure
from reflexio.ports.work import Work

IDS_AT_ONCE = 200
LATE_ROWS = 100
"""Of each kind, published while the rest was removed, which the last write of an erasure removes."""
ABSENT = {"session_outcomes": 0, "purged_profiles": 0, "purged_user_playbooks": 0}
"""Counts that callers expect: sessions have no outcomes here, and rows are deleted, never blanked."""


class WithdrawUser(Protocol):
    """Removes a user's part in agent playbooks; returns how many of them were withdrawn altogether.

    Calls `also` in the transaction that does it.
    """

    async def __call__(
        self, store: Store, user_id: str, now: int, *, withdraw_unsupported: bool, also: Callable[[Tx], None]
    ) -> int: ...


async def delete_interaction(store: Store, user_id: str, interaction_id: int) -> DeleteResponse:
    if not await store.write(lambda tx: tx.interactions.remove(user_id, interaction_id)):
        raise NotFound(f"User {user_id!r} has none of that id.", what="interaction", id=interaction_id)
    return DeleteResponse(message="Deleted")


async def delete_request(store: Store, request_id: str) -> DeleteResponse:
    if not (await _remove(store, RequestFilter(request_id=request_id))).requests:
        raise NotFound(what="request", id=request_id)
    return DeleteResponse(message="Deleted")


async def delete_requests(store: Store, request_ids: Sequence[str]) -> BulkDeleteResponse:
    batches = [request_ids[start : start + IDS_AT_ONCE] for start in range(0, len(request_ids), IDS_AT_ONCE)]
    count = sum([(await _remove(store, batch)).requests for batch in batches])
    return BulkDeleteResponse(deleted_count=count, message=f"Deleted {count} request(s)")


async def delete_session(store: Store, session_id: str) -> DeleteSessionResponse:
    count = (await _remove(store, RequestFilter(session_id=session_id))).requests
    return DeleteSessionResponse(deleted_requests_count=count, message=f"Deleted {count} request(s)")


async def delete_all_interactions(store: Store) -> BulkDeleteResponse:
    count = (await _remove(store, RequestFilter())).turns
    return BulkDeleteResponse(deleted_count=count, message=f"Deleted {count} interaction(s)")


async def _remove(store: Store, where: RequestFilter | Sequence[str]) -> RemovedRequests:
    """Removes requests a few at a time: other writes are made in between."""
    total = RemovedRequests()
    while removed := await store.write(lambda tx: tx.requests.remove_some(where)):
        total += removed
    return total


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

    Jobs of `work` that are about the user alone are cancelled first. The rows are deleted a few at a time, so that no
    other write waits for long. That it has begun is stored first: after a crash a repeated call goes on, with a receipt
    of all that was there, or else `finish_erasures`.
    """
    counted = await store.read(lambda tx: _count(tx, user_id))
    new = replace(counted, withdraw_unsupported=withdraw_unsupported, started_at=clock.now())
    return await _erase(store, clock, await store.write(lambda tx: tx.erasures.begin(new)), withdraw_user, work)


async def finish_erasures(
    store: Store, clock: Clock, withdraw_user: WithdrawUser, work: Work | None = None, *, begun_before: int
) -> int:
    """Finishes erasures that a crash has interrupted; returns how many. Younger ones may be under way in a call."""
    unfinished = await store.read(lambda tx: tx.erasures.unfinished())
    old = [erasure for erasure in unfinished if erasure.started_at <= begun_before]
    for erasure in old:
        await _erase(store, clock, erasure, withdraw_user, work)
    return len(old)


def _count(tx: Tx, user_id: str) -> UnfinishedErasure:
    """What a user has. Read beforehand: to count everything takes long, and writers would wait for it."""
    rows = {
        "interactions": tx.interactions.count(user_id),
        "requests": tx.requests.count(user_id),
        **{name: tx.learnings.count(where) for name, where in _learnings_of(user_id).items()},
    }
    names = frozenset(tx.erasures.names(user_id))
    return UnfinishedErasure(user_id, tables=tx.erasures.count(user_id), rows=rows, names=names)


def _learnings_of(user_id: str) -> dict[str, LearningFilter]:
    kinds = {"profiles": Kind.PROFILE, "user_playbooks": Kind.USER_PLAYBOOK}
    return {name: LearningFilter(kind, user_id=user_id, statuses=None) for name, kind in kinds.items()}


async def _erase(
    store: Store, clock: Clock, erasure: UnfinishedErasure, withdraw_user: WithdrawUser, work: Work | None
) -> ClearUserDataResponse:
    user_id, now = erasure.user_id, clock.now()
    if work:
        for key in await store.read(lambda tx: tx.erasures.unfinished_jobs(user_id)):
            await work.cancel(key)

    while await store.write(lambda tx: tx.erasures.remove_some(user_id)):
        pass

    def remove_playbooks(tx: Tx) -> None:
        tx.erasures.remove_some(user_id)
        tx.learnings.remove_some(_learnings_of(user_id)["user_playbooks"])

    withdrawn = await withdraw_user(
        store, user_id, now, withdraw_unsupported=erasure.withdraw_unsupported, also=remove_playbooks
    )
    response = None
    while response is None:
        for where in _learnings_of(user_id).values():
            while await store.write(lambda tx, where=where: tx.learnings.remove_some(where)):  # type: ignore[misc]
                pass
        await _remove(store, RequestFilter(user_id=user_id))
        response = await store.write(lambda tx: _finish(tx, store.org_id, erasure, now))
    return response.model_copy(update={"withdrawn_agent_playbooks": withdrawn})


def _finish(tx: Tx, org_id: str, erasure: UnfinishedErasure, now: int) -> ClearUserDataResponse | None:
    """Removes what came last, and the record of the erasure; the receipt counts both. None when too much came."""
    user_id = erasure.user_id
    late = _count(tx, user_id)
    if max(late.rows.values()) > LATE_ROWS:
        return None
    tx.erasures.remove_some(user_id)
    tx.erasures.end(user_id)
    tx.requests.remove_some(RequestFilter(user_id=user_id))
    for where in _learnings_of(user_id).values():
        tx.learnings.remove_some(where)
    tx.erasures.remove_empty_pools()
    tx.erasures.remove_unused_names(erasure.names | late.names)
    receipt = ErasureReceipt.issue(org_id, user_id, now, _sum(erasure.tables, late.tables))
    tx.erasures.add_receipt(receipt.digest, now)
    counts = _sum(erasure.rows, late.rows)
    message = f"Deleted {sum(counts.values())} row(s)"
    return ClearUserDataResponse(deleted_counts={**counts, **ABSENT}, message=message, receipt=receipt)


def _sum(counts: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    return {name: counts.get(name, 0) + more.get(name, 0) for name in (*counts, *more)}


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
