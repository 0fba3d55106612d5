"""Operations: long work that reports progress and can be cancelled; one of a service runs at a time.

A worker calls `begin`, then `progress` and `record_user` as it goes on, and at the end `finish`, `fail` or `stop`.
Each call may be repeated after a crash without another effect. An operation without a heartbeat for
`ABANDONED_AFTER` seconds counts as dead: it is shown as failed, and another one may begin.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from reflexio.errors import Conflict, NotFound, ReflexioError, StorageUnavailable
from reflexio.jobs.token_budget import USED_UP
from reflexio.models.operation import ABANDONED, Operation, OperationStatus, OperationStatusInfo, UserProgress
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Store, Tx
from reflexio.ports.work import Json, Work

T = TypeVar("T")

log = logging.getLogger("reflexio.jobs")

KEPT = 20
"""Operations of a service that stay readable."""
USERS_SHOWN = 1000
"""Users named in a status, newest last. The counts cover all users."""
CANCELLED_WITHIN = 1.0
"""Seconds between two looks at whether somebody has cancelled the operation, here or at another server."""
USERS_STREAMED = 20
"""Users named in each live event. There is an event for every user, so it must stay small."""


def begin(
    tx: Tx, service_name: str, operation_id: str, params: Mapping[str, Any], now: int, *, total_users: int = 0
) -> Operation:
    """Raises Conflict while another one of the service is in progress. The same id again is the same operation."""
    if begun := tx.operations.hold(operation_id):
        return begun
    for other in tx.operations.running(service_name):
        if not other.is_abandoned(now):
            raise Conflict(
                f"Another {service_name!r} is already in progress: operation {other.id!r}. Wait for it or cancel it."
            )
        tx.operations.put(other.ended(OperationStatus.FAILED, now, ABANDONED))
    operation = Operation(
        operation_id, service_name, dict(params), started_at=now, heartbeat_at=now, total_users=total_users
    )
    tx.operations.add(operation)
    tx.operations.trim(service_name, KEPT)
    return operation


def progress(
    tx: Tx,
    operation_id: str,
    now: int,
    *,
    total_users: int | None = None,
    current_user_id: str | None = None,
    stats: Mapping[str, int] | None = None,
) -> Operation:
    """A heartbeat with what is known now; `stats` replace those of the same name. Check `cancel_requested` afterwards.

    Raises Conflict when the operation has ended, also when it was taken for dead: the worker must stop then.
    """
    before = _running(tx, operation_id)
    after = replace(
        before,
        heartbeat_at=now,
        total_users=before.total_users if total_users is None else total_users,
        current_user_id=before.current_user_id if current_user_id is None else current_user_id,
        stats={**before.stats, **(stats or {})},
    )
    tx.operations.put(after)
    return after


def record_user(
    tx: Tx, operation_id: str, user_id: str, now: int, *, error: str = "", stats: Mapping[str, int] | None = None
) -> Operation:
    """Records that a user is done, or failed with `error`. Repeated, it counts once.

    `stats` are added to those of the operation, unless the user was recorded before with the same or a better end.
    """
    operation = _running(tx, operation_id)
    before = tx.operations.note(operation_id, UserProgress(user_id, error))
    failed = operation.failed_users + bool(error) - bool(before and before.error)
    processed = operation.processed_users + (not error) - bool(before and not before.error)
    is_new = before is None or (bool(before.error) and not error)
    after = replace(
        operation,
        heartbeat_at=now,
        processed_users=processed,
        failed_users=failed,
        stats=_sum_stats(operation.stats, stats or {}) if is_new else operation.stats,
        current_user_id="" if operation.current_user_id == user_id else operation.current_user_id,
    )
    tx.operations.put(after)
    return after


def finish(tx: Tx, operation_id: str, now: int) -> Operation:
    """Ends it as completed. An operation that has ended before stays as it ended."""
    return _end(tx, operation_id, OperationStatus.COMPLETED, now)


def fail(tx: Tx, operation_id: str, error: str, now: int) -> Operation:
    return _end(tx, operation_id, OperationStatus.FAILED, now, error)


def stop(tx: Tx, operation_id: str, now: int) -> Operation:
    """Ends it as cancelled."""
    return _end(tx, operation_id, OperationStatus.CANCELLED, now)


def cancel(tx: Tx, service_name: str | None, now: int) -> list[Operation]:
    """Requests cancellation of the running operations of one service or all. Abandoned ones end at once."""
    cancelled = []
    for operation in tx.operations.running(service_name):
        requested = replace(operation, cancel_requested=True)
        is_dead = operation.is_abandoned(now)
        cancelled.append(requested.ended(OperationStatus.CANCELLED, now) if is_dead else requested)
        tx.operations.put(cancelled[-1])
    return cancelled


def get(tx: Tx, operation_id: str) -> Operation:
    operation = tx.operations.get(operation_id)
    if operation is None:
        raise NotFound(what="operation", id=operation_id)
    return operation


def latest(tx: Tx, service_name: str) -> Operation | None:
    """The operation that began last."""
    return tx.operations.latest(service_name)


def describe(tx: Tx, operation: Operation, now: int, *, users: int = USERS_SHOWN) -> OperationStatusInfo:
    """An operation as a caller sees it, with the users that were done last."""
    return OperationStatusInfo.of(operation.seen(now), tx.operations.outcomes(operation.id, users))


async def fail_with_job(work: Work, store: Store, clock: Clock, key: str, operation_id: str) -> None:
    """Waits for a job. When it ends unexpectedly, its operation fails now and not when its heartbeat is missed."""
    try:
        job = await work.wait(key)
    except StorageUnavailable:
        return  # This process ends, and the next one continues the job.
    if job.state != "done":
        await store.write(lambda tx: fail(tx, operation_id, job.error or job.state, clock.now()))


async def follow(
    store: Store, clock: Clock, operation_id: str, pause: Callable[[], Awaitable[bool]]
) -> AsyncIterator[OperationStatusInfo | None]:
    """The status now and after each change, until the end; None after a pause in which nothing changed.

    `pause` waits a moment and returns whether to go on.
    """

    def look(tx: Tx) -> OperationStatusInfo | None:
        operation = tx.operations.get(operation_id)
        return describe(tx, operation, clock.now(), users=USERS_STREAMED) if operation else None

    seen = None
    while (now := await store.read(look)) is not None:
        yield now if now != seen else None
        seen = now
        if now.has_ended or not await pause():
            return


def _running(tx: Tx, operation_id: str) -> Operation:
    operation = tx.operations.hold(operation_id)
    if operation is None:
        raise NotFound(what="operation", id=operation_id)
    if not operation.is_running:
        raise Conflict(f"The operation {operation_id!r} has ended: {operation.status.value}.")
    return operation


def _end(tx: Tx, operation_id: str, status: OperationStatus, now: int, error: str = "") -> Operation:
    before = tx.operations.hold(operation_id)
    if before is None:
        raise NotFound(what="operation", id=operation_id)
    if not before.is_running:
        return before
    after = before.ended(status, now, error)
    tx.operations.put(after)
    return after


def _is_known(tx: Tx, user_id: str) -> bool:
    return tx.requests.count(user_id) > 0


def _sum_stats(stats: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    return {name: stats.get(name, 0) + more.get(name, 0) for name in (*stats, *more)}


@dataclass(frozen=True)
class OperationRun:
    """The operation that a workflow carries out: heartbeat, budget and end."""

    store: Store
    clock: Clock
    operation_id: str
    is_within_budget: Callable[[Tx, int], bool]

    async def run(
        self,
        work: Callable[[], Coroutine[Any, Any, bool]],
        on_error: Callable[[ReflexioError], Awaitable[None]] | None = None,
    ) -> Json:
        """Ends the operation as `work` ends: completed on True, cancelled on False, failed on an error of ours."""
        try:
            complete = bool(await self.unless_cancelled(work()))
        except Conflict as error:
            # The operation was taken for dead, and another one may have begun: the rest is not ours any more.
            log.warning("operation %s stops: %s", self.operation_id, error)
            return {"complete": False}
        except ReflexioError as error:
            reason = str(error)
            if on_error:
                await on_error(error)
            await self.store.write(lambda tx: fail(tx, self.operation_id, reason, self.clock.now()))
            return {"complete": False}
        end = finish if complete else stop
        await self.store.write(lambda tx: end(tx, self.operation_id, self.clock.now()))
        return {"complete": complete}

    async def unless_cancelled(self, work: Coroutine[Any, Any, T]) -> T | None:
        """What `work` returns; None when somebody cancels the operation: then the work ends in its middle.

        It may wait for a model that never answers. Its steps may end anywhere, as they do in a crash.
        """
        working = asyncio.create_task(work)
        try:
            while not (await asyncio.wait({working}, timeout=CANCELLED_WITHIN))[0]:
                if await self.store.read(self._is_cancelled):
                    return None
            return working.result()
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    def _is_cancelled(self, tx: Tx) -> bool:
        operation = tx.operations.get(self.operation_id)
        return operation is not None and operation.cancel_requested

    async def heartbeat(self, current_user_id: str = "") -> bool:
        """Records a heartbeat; returns False when somebody cancelled. Raises when today's budget is used up."""
        now = self.clock.now()

        def beat(tx: Tx) -> bool:
            if not self.is_within_budget(tx, now):
                raise ReflexioError.with_message(USED_UP)
            user_id = current_user_id if _is_known(tx, current_user_id) else ""
            operation = progress(tx, self.operation_id, now, current_user_id=user_id)
            return not operation.cancel_requested

        return await self.store.write(beat)

    async def record_user(self, user_id: str, *, error: str = "", stats: Mapping[str, int] | None = None) -> None:
        now = self.clock.now()
        await self.store.write(lambda tx: self.note_user(tx, user_id, now, error=error, stats=stats))

    def note_user(
        self, tx: Tx, user_id: str, now: int, *, error: str = "", stats: Mapping[str, int] | None = None
    ) -> Operation:
        """Records a user, unless the user was erased meanwhile: then nothing may name them again."""
        if _is_known(tx, user_id):
            return record_user(tx, self.operation_id, user_id, now, error=error, stats=stats)
        before = _running(tx, self.operation_id)
        return progress(tx, self.operation_id, now, current_user_id="", stats=_sum_stats(before.stats, stats or {}))
