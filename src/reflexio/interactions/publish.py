"""Stores published turns and marks their user as having unlearned turns, in one transaction.

A crash between the two would lose learning silently.
"""

import hashlib
from dataclasses import dataclass, replace

from reflexio.errors import Conflict
from reflexio.interactions.redaction import redact_turns, stored_kinds
from reflexio.models.identity import new_id, new_session
from reflexio.models.interaction import (
    FinalizeSessionResponse,
    InteractionData,
    PublishRequest,
    PublishResponse,
    Request,
)
from reflexio.models.redaction import RedactionKind
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Database, Receipt, Store, Tx

DEFAULT_VERSION = "agent-v0"


RESERVED_SECONDS = 60
"""How long the scheduler leaves a user alone whose publish a caller waits for, should that caller's server die."""


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


def _store(tx: Tx, publish: PreparedPublish, now: int, *, reserved: bool) -> None:
    if not publish.request.evaluation_only:
        # First, which locks the user where several processes write: turns are numbered in the order of their commits.
        tx.users.mark_unlearned(publish.request.user_id, now)
        if reserved:
            tx.users.reserve(publish.request.user_id, now + RESERVED_SECONDS)
    tx.requests.add(publish.request)
    tx.interactions.add(publish.request, publish.turns)


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
    reserved: bool = False,
) -> PublishResponse:
    """Stores the turns. With an idempotency key, a repeated call gets the first response and stores nothing.

    With `reserved`, the scheduler leaves the user alone for a while: the caller learns these turns now.

    The transaction that stores them reads what is to be redacted, so that no publish overtakes a change of that. The
    redaction itself is made outside: it may take long, and everybody waits for the writer.
    """
    now = clock.now()
    prepared = prepare(publish_request, now, default_version)
    kinds = frozenset[RedactionKind]()
    while True:
        attempt = await _attempt(database, publish_request, prepared, kinds, idempotency_key, reserved)
        outcome = await store.write(attempt.store)
        if isinstance(outcome, PublishResponse):
            return outcome
        kinds = outcome


async def _attempt(
    database: Database,
    publish_request: PublishRequest,
    prepared: PreparedPublish,
    kinds: frozenset[RedactionKind],
    key: str,
    reserved: bool,
) -> "_Attempt":
    turns, redacted = await redact_turns(prepared.turns, kinds)
    count = sum(redacted.values()) if redacted else 0
    stored = replace(prepared, turns=turns, request=prepared.request.model_copy(update={"redacted_count": count}))
    response = _response(stored, database).model_copy(update={"redacted": redacted})
    fingerprint = _fingerprint(publish_request, turns, kinds) if key else ""
    return _Attempt(stored, kinds, key, fingerprint, response, reserved)


@dataclass(frozen=True)
class _Attempt:
    """A publish whose turns were redacted of certain kinds."""

    publish: PreparedPublish
    kinds: frozenset[RedactionKind]
    key: str
    fingerprint: str
    response: PublishResponse
    reserved: bool

    def store(self, tx: Tx) -> PublishResponse | frozenset[RedactionKind]:
        """Stores it, or returns the kinds that must be redacted instead."""
        wanted = stored_kinds(tx)
        if wanted != self.kinds:
            first = tx.receipts.get(self.key) if self.key else None
            return self._repeat(first) if first else wanted
        now = self.publish.request.created_at
        receipt = Receipt(self.fingerprint, self.response.model_dump_json(), self.publish.request.user_id)
        if self.key and not tx.receipts.add(self.key, receipt, now):
            first = tx.receipts.get(self.key)
            assert first is not None, "a receipt that cannot be added exists"
            return self._repeat(first)
        _store(tx, self.publish, now, reserved=self.reserved)
        return self.response

    def _repeat(self, first: Receipt) -> PublishResponse | frozenset[RedactionKind]:
        """The first response to this key. The kinds may have been others then: they say what is compared."""
        kinds = _kinds_of(first.fingerprint)
        if kinds != self.kinds:
            return kinds
        if first.fingerprint != self.fingerprint:
            raise Conflict(f"The idempotency key {self.key!r} was used for another request.")
        return PublishResponse.model_validate_json(first.answer)


# A client stamps its turns when it sends them: the same call repeated a second later is the same call.
TIME_STAMPS = {"interaction_data_list": {"__all__": {"created_at"}}}


def _fingerprint(publish_request: PublishRequest, turns: list[InteractionData], kinds: frozenset[RedactionKind]) -> str:
    """A digest of what the caller sent. What was redacted is not in it either: a short number could be guessed."""
    if kinds:
        publish_request = publish_request.model_copy(update={"interaction_data_list": turns})
    document = publish_request.model_dump_json(exclude_defaults=True, exclude=TIME_STAMPS)
    digest = hashlib.sha256(document.encode()).hexdigest()
    return f"{'+'.join(sorted(kinds))}:{digest}" if kinds else digest


def _kinds_of(fingerprint: str) -> frozenset[RedactionKind]:
    names, colon, _ = fingerprint.partition(":")
    return frozenset(map(RedactionKind, names.split("+"))) if colon else frozenset()


async def finalize_session(store: Store, user_id: str, session_id: str) -> FinalizeSessionResponse:
    if await store.write(lambda tx: tx.requests.finish(user_id, session_id)):
        return FinalizeSessionResponse(accepted=True, message="The session is finished")
    return FinalizeSessionResponse(message=f"There is no session {session_id!r} of user {user_id!r}")
