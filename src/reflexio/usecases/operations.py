"""Operations: long work of which one runs at a time, that tells how far it is, and that can be asked to stop.

Whoever does the work calls `begin`, then `progress` and `done` as it goes on, and at the end `finish`, `fail` or
`stop`. Each may be called again after a crash with no other effect. Work that gives no sign of life for
`ABANDONED_AFTER` seconds is taken for dead: it is shown as failed, and another may begin in its place.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from reflexio.errors import Conflict, NotFound, StorageUnavailable
from reflexio.models.operation import ABANDONED, Operation, OperationStatus, OperationStatusInfo, Outcome
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Store, Tx
from reflexio.ports.work import Work

KEPT = 20
"""Operations of a service that can still be looked at."""
SHOWN = 1000
"""Users that an answer names: the last ones. The counts are of all."""
FOLLOWED = 20
"""Users that each piece of live news names. There is news for every user, so that it must stay small."""


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
    """A sign of life, with what is known now; `stats` take the place of those of the same name. Look at
    `cancel_requested` of the answer.

    Raises Conflict when the operation has ended, as one has that was taken for dead: then leave the work to others.
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


def done(
    tx: Tx, operation_id: str, user_id: str, now: int, *, error: str = "", stats: Mapping[str, int] | None = None
) -> Operation:
    """The work is through with a user, and with an error it has failed. Told again, it counts once.

    `stats` are added to those of the operation, unless the user was through before with the same end or a better one.
    """
    operation = _running(tx, operation_id)
    before = tx.operations.note(operation_id, Outcome(user_id, error))
    failed = operation.failed_users + bool(error) - bool(before and before.error)
    processed = operation.processed_users + (not error) - bool(before and not before.error)
    is_news = before is None or (bool(before.error) and not error)
    after = replace(
        operation,
        heartbeat_at=now,
        processed_users=processed,
        failed_users=failed,
        stats=_added(operation.stats, stats or {}) if is_news else operation.stats,
        current_user_id="" if operation.current_user_id == user_id else operation.current_user_id,
    )
    tx.operations.put(after)
    return after


def finish(tx: Tx, operation_id: str, now: int) -> Operation:
    """It is done. One that has ended before stays as it ended."""
    return _end(tx, operation_id, OperationStatus.COMPLETED, now)


def fail(tx: Tx, operation_id: str, error: str, now: int) -> Operation:
    return _end(tx, operation_id, OperationStatus.FAILED, now, error)


def stop(tx: Tx, operation_id: str, now: int) -> Operation:
    """It has ended early, because somebody asked."""
    return _end(tx, operation_id, OperationStatus.CANCELLED, now)


def cancel(tx: Tx, service_name: str | None, now: int) -> list[Operation]:
    """Asks what is in progress to stop, all services unless one is named. What was abandoned ends at once."""
    asked = [_asked_to_stop(each, now) for each in tx.operations.running(service_name)]
    for operation in asked:
        tx.operations.put(operation)
    return asked


def get(tx: Tx, operation_id: str) -> Operation:
    operation = tx.operations.get(operation_id)
    if operation is None:
        raise NotFound(what="operation", id=operation_id)
    return operation


def latest(tx: Tx, service_name: str) -> Operation | None:
    """The one that was begun last."""
    return tx.operations.latest(service_name)


def told(tx: Tx, operation: Operation, now: int, *, users: int = SHOWN) -> OperationStatusInfo:
    """An operation as a caller sees it, with the users it was through with last."""
    return OperationStatusInfo.of(operation.seen(now), tx.operations.outcomes(operation.id, users))


async def see_through(work: Work, store: Store, clock: Clock, key: str, operation_id: str) -> None:
    """Work that ended in a way that nobody expected is shown as failed now, not when it is taken for dead."""
    try:
        job = await work.wait(key)
    except StorageUnavailable:
        return  # This process ends, and the work goes on in the next.
    if job.state != "done":
        await store.write(lambda tx: fail(tx, operation_id, job.error or job.state, clock.now()))


async def follow(
    store: Store, clock: Clock, operation_id: str, pause: Callable[[], Awaitable[bool]]
) -> AsyncIterator[OperationStatusInfo | None]:
    """How far it is, now and after each change, until it has ended; None after a pause in which nothing changed.

    `pause` waits a moment and says whether to go on.
    """

    def look(tx: Tx) -> OperationStatusInfo | None:
        operation = tx.operations.get(operation_id)
        return told(tx, operation, clock.now(), users=FOLLOWED) if operation else None

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


def _asked_to_stop(operation: Operation, now: int) -> Operation:
    asked = replace(operation, cancel_requested=True)
    return asked.ended(OperationStatus.CANCELLED, now) if operation.is_abandoned(now) else asked


def _added(stats: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    return {name: stats.get(name, 0) + more.get(name, 0) for name in (*stats, *more)}
