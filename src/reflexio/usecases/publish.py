"""Publish: what was said and done is stored, and its user is marked as having something to learn from.

Both happen in one transaction: a crash between them would lose learning silently.
"""

import hashlib
from dataclasses import dataclass

from reflexio.errors import Conflict, NotFound
from reflexio.models.identity import new_id
from reflexio.models.interaction import (
    FinalizeSessionResponse,
    InteractionData,
    LearningStatusResponse,
    PublishRequest,
    PublishResponse,
    Request,
)
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Database, LearnedWindow, Receipt, Store, Tx, Waiting
from reflexio.usecases.configure import stored
from reflexio.usecases.spend import allowed

DEFAULT_VERSION = "agent-v0"


@dataclass(frozen=True)
class Publish:
    """A publish ready to be stored."""

    request: Request
    turns: list[InteractionData]
    warnings: list[str]


def prepare(wanted: PublishRequest, now: int, default_version: str) -> Publish:
    turns = [turn for turn in wanted.interaction_data_list if not turn.is_empty]
    empty = len(wanted.interaction_data_list) - len(turns)
    request = Request(
        request_id=wanted.request_id or new_id(),
        user_id=wanted.user_id,
        created_at=now,
        source=wanted.source,
        agent_version=wanted.agent_version or default_version,
        session_id=wanted.session_id or f"session-{new_id()}",
        evaluation_only=wanted.evaluation_only,
        session_finished=wanted.session_finished,
        skip_aggregation=wanted.skip_aggregation,
        force_extraction=wanted.force_extraction,
        retrieval_experiment_id=wanted.retrieval_experiment_id,
        retrieval_experiment_arm=wanted.retrieval_experiment_arm,
    )
    return Publish(request, turns, [f"{empty} empty interaction(s) were left out"] if empty else [])


def _store(tx: Tx, publish: Publish, now: int) -> None:
    tx.requests.add(publish.request)
    tx.interactions.add(publish.request, publish.turns)
    if not publish.request.evaluation_only:
        tx.users.mark_unlearned(publish.request.user_id, now)


def _answer(publish: Publish, database: Database) -> PublishResponse:
    learning = not publish.request.evaluation_only
    return PublishResponse(
        message=f"Stored {len(publish.turns)} interaction(s)",
        warnings=publish.warnings,
        request_id=publish.request.request_id,
        session_id=publish.request.session_id,
        storage_type=database.type,
        storage_label=database.label,
        learning_status="deferred" if learning else "not_tracked",
        learning_reason="queued" if learning else "not_applicable",
    )


async def publish(
    database: Database,
    store: Store,
    clock: Clock,
    wanted: PublishRequest,
    *,
    idempotency_key: str = "",
    default_version: str = DEFAULT_VERSION,
) -> PublishResponse:
    """Stores the turns. With an idempotency key, a repetition gets the first answer and stores nothing."""
    now = clock.now()
    made = prepare(wanted, now, default_version)
    answer = _answer(made, database)
    fingerprint = _fingerprint(wanted) if idempotency_key else ""

    def once(tx: Tx) -> PublishResponse:
        if idempotency_key and not tx.receipts.add(
            idempotency_key, Receipt(fingerprint, answer.model_dump_json()), now
        ):
            return _repeated(tx, idempotency_key, fingerprint)
        _store(tx, made, now)
        return answer

    return await store.write(once)


def _repeated(tx: Tx, key: str, fingerprint: str) -> PublishResponse:
    first = tx.receipts.get(key)
    if first is None or first.fingerprint != fingerprint:
        raise Conflict(f"The idempotency key {key!r} was used for another request.")
    return PublishResponse.model_validate_json(first.answer)


# A client stamps its turns when it sends them: the same call made a second later is still the same call.
STAMPS = {"interaction_data_list": {"__all__": {"created_at"}}}


def _fingerprint(wanted: PublishRequest) -> str:
    return hashlib.sha256(wanted.model_dump_json(exclude_defaults=True, exclude=STAMPS).encode()).hexdigest()


async def finalize_session(store: Store, user_id: str, session_id: str) -> FinalizeSessionResponse:
    if await store.write(lambda tx: tx.requests.finish(user_id, session_id)):
        return FinalizeSessionResponse(accepted=True, message="The session is finished")
    return FinalizeSessionResponse(message=f"There is no session {session_id!r} of user {user_id!r}")


def _reason(aside: list[LearnedWindow]) -> str:
    return aside[0].error if aside else "covered"


def _hold_up(tx: Tx, waiting: Waiting | None, now: int) -> str:
    if tx.stalls.get():
        return "stalled"
    if not allowed(tx, stored(tx), now):
        return "budget_used_up"
    return "retrying" if waiting is not None and waiting.attempts > 0 else "queued"


async def learning_status(store: Store, clock: Clock, request_id: str) -> LearningStatusResponse:
    now = clock.now()

    def look(tx: Tx) -> LearningStatusResponse:
        request = tx.requests.get(request_id)
        if request is None:
            raise NotFound(what="request", id=request_id)
        if request.evaluation_only:
            return LearningStatusResponse(status="not_tracked", reason="not_applicable")
        turns = [turn.interaction_id for turn in tx.interactions.of_requests([request_id])]
        if not turns:
            return LearningStatusResponse(status="not_tracked", reason="inputs_erased")
        if tx.interactions.count_unlearned(request_id) == 0:
            aside = [each for each in tx.windows.of_turns(request.user_id, turns) if each.state == "set_aside"]
            return LearningStatusResponse(status="failed" if aside else "done", reason=_reason(aside))
        waiting = tx.users.waiting(request.user_id)
        return LearningStatusResponse(status="pending", reason=_hold_up(tx, waiting, now))

    return await store.read(look)
