"""Stores published turns and marks their user as having unlearned turns, in one transaction.

A crash between the two would lose learning silently.
"""

import hashlib
from dataclasses import dataclass

from reflexio.errors import Conflict
from reflexio.models.identity import new_id, new_session
from reflexio.models.interaction import (
    FinalizeSessionResponse,
    InteractionData,
    PublishRequest,
    PublishResponse,
    Request,
)
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Database, Receipt, Store, Tx

DEFAULT_VERSION = "agent-v0"


@dataclass(frozen=True)
class PreparedPublish:
    """A publish ready to be stored."""

    request: Request
    turns: list[InteractionData]
    warnings: list[str]


def prepare(publish_request: PublishRequest, now: int, default_version: str) -> PreparedPublish:
    turns = [turn for turn in publish_request.interaction_data_list if not turn.is_empty]
    empty = len(publish_request.interaction_data_list) - len(turns)
    request = Request(
        request_id=publish_request.request_id or new_id(),
        user_id=publish_request.user_id,
        created_at=now,
        source=publish_request.source,
        agent_version=publish_request.agent_version or default_version,
        session_id=publish_request.session_id or new_session(),
        evaluation_only=publish_request.evaluation_only,
        session_finished=publish_request.session_finished,
        skip_aggregation=publish_request.skip_aggregation,
        force_extraction=publish_request.force_extraction,
        retrieval_experiment_id=publish_request.retrieval_experiment_id,
        retrieval_experiment_arm=publish_request.retrieval_experiment_arm,
    )
    return PreparedPublish(request, turns, [f"{empty} empty interaction(s) were left out"] if empty else [])


def _store(tx: Tx, publish: PreparedPublish, now: int) -> None:
    tx.requests.add(publish.request)
    tx.interactions.add(publish.request, publish.turns)
    if not publish.request.evaluation_only:
        tx.users.mark_unlearned(publish.request.user_id, now)


def _response(publish: PreparedPublish, database: Database) -> PublishResponse:
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
    publish_request: PublishRequest,
    *,
    idempotency_key: str = "",
    default_version: str = DEFAULT_VERSION,
) -> PublishResponse:
    """Stores the turns. With an idempotency key, a repeated call gets the first response and stores nothing."""
    now = clock.now()
    prepared = prepare(publish_request, now, default_version)
    response = _response(prepared, database)
    fingerprint = _fingerprint(publish_request) if idempotency_key else ""

    def store_once(tx: Tx) -> PublishResponse:
        if idempotency_key and not tx.receipts.add(
            idempotency_key, Receipt(fingerprint, response.model_dump_json(), publish_request.user_id), now
        ):
            return _first_response(tx, idempotency_key, fingerprint)
        _store(tx, prepared, now)
        return response

    return await store.write(store_once)


def _first_response(tx: Tx, key: str, fingerprint: str) -> PublishResponse:
    first = tx.receipts.get(key)
    if first is None or first.fingerprint != fingerprint:
        raise Conflict(f"The idempotency key {key!r} was used for another request.")
    return PublishResponse.model_validate_json(first.answer)


# A client stamps its turns when it sends them: the same call repeated a second later is the same call.
TIME_STAMPS = {"interaction_data_list": {"__all__": {"created_at"}}}


def _fingerprint(publish_request: PublishRequest) -> str:
    return hashlib.sha256(
        publish_request.model_dump_json(exclude_defaults=True, exclude=TIME_STAMPS).encode()
    ).hexdigest()


async def finalize_session(store: Store, user_id: str, session_id: str) -> FinalizeSessionResponse:
    if await store.write(lambda tx: tx.requests.finish(user_id, session_id)):
        return FinalizeSessionResponse(accepted=True, message="The session is finished")
    return FinalizeSessionResponse(message=f"There is no session {session_id!r} of user {user_id!r}")
