"""Stores rows of an export. What is there already is recognised and stays as it is, so an import can be repeated.

A publish is recognised by its id; `recognition.py` says which learning is there already.
"""

import dataclasses
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from reflexio.aggregation.cluster_identity import fingerprint
from reflexio.errors import Conflict, InvalidRequest
from reflexio.interactions.redaction import redact_learnings, redact_turns, stored_kinds
from reflexio.models.interaction import Request
from reflexio.models.learning import Kind, Learning, Scope
from reflexio.models.transfer import (
    ImportedRow,
    ImportRowsRequest,
    ImportRowsResponse,
    TransferredLearning,
    TransferredLinks,
    TransferredPool,
    TransferredRequest,
)
from reflexio.organisations.configuration import Check, CheckAssistant
from reflexio.organisations.configuration import change as change_configuration
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Cluster, LineageEvent, Pool, Store, Tx
from reflexio.retrieval.scope import ScopeClassifier
from reflexio.transfer.recognition import StoredLearnings


async def import_rows(
    store: Store,
    clock: Clock,
    scopes: ScopeClassifier,
    rows: ImportRowsRequest,
    check: Check,
    check_assistant: CheckAssistant,
) -> ImportRowsResponse:
    """Stores the rows in one transaction; what the organisation redacts is redacted."""
    learnings, _ = await redact_learnings(store, [_learning(row) for row in rows.learnings])
    learnings = await _with_scopes(scopes, rows.learnings, learnings)
    kinds = await store.read(stored_kinds)
    requests = []
    for request in rows.requests:
        turns, _ = await redact_turns(list(request.turns), kinds)
        requests.append(request.model_copy(update={"turns": turns}))
    now = clock.now()

    def add(tx: Tx) -> ImportRowsResponse:
        return ImportRowsResponse(
            learnings=_add_learnings(tx, rows.learnings, learnings),
            requests=[_add_request(tx, request, now) for request in requests],
            links=[_add_links(tx, links) for links in rows.links],
            pools=[_add_pool(tx, pool, now) for pool in rows.pools],
        )

    response = await store.write(add)
    if rows.configuration is None:
        return response
    configuration = await _add_configuration(store, clock, rows.configuration, check, check_assistant)
    return response.model_copy(update={"configuration": configuration})


async def _add_configuration(
    store: Store, clock: Clock, configuration: dict[str, Any], check: Check, check_assistant: CheckAssistant
) -> ImportedRow:
    if await store.read(lambda tx: tx.configs.get()) is not None:
        return ImportedRow(reason="The organisation has a configuration, which stays as it is.")
    try:
        await change_configuration(store, clock, configuration, check, check_assistant)
    except InvalidRequest as error:
        # Secrets are not exported: a model without its key, say, is for the operator to set up.
        return ImportedRow(reason=f"The configuration was not stored: {error}")
    return ImportedRow(is_added=True)


# Learnings


def _learning(row: TransferredLearning) -> Learning:
    names = [field.name for field in dataclasses.fields(Learning) if field.name in TransferredLearning.model_fields]
    values = {name: getattr(row, name) for name in names}
    return Learning(**{**values, "tags": tuple(row.tags), "scope": row.scope or Scope.WHEN_RELEVANT})


async def _with_scopes(
    scopes: ScopeClassifier, rows: Sequence[TransferredLearning], learnings: Sequence[Learning]
) -> list[Learning]:
    """Decides the scopes that are not given, in no more time than a call that adds learnings takes."""
    undecided = [learning for row, learning in zip(rows, learnings, strict=True) if row.scope is None]
    decided = iter(await scopes.decide_in_time(undecided) if undecided else ())
    return [
        learning if row.scope else dataclasses.replace(learning, scope=next(decided))
        for row, learning in zip(rows, learnings, strict=True)
    ]


def _add_learnings(tx: Tx, rows: Sequence[TransferredLearning], learnings: Sequence[Learning]) -> list[ImportedRow]:
    """Adds them in their order, so that their numbers have it too."""
    stored = StoredLearnings(tx, learnings)
    imported: list[ImportedRow] = []
    for _, group in groupby(zip(rows, learnings, strict=True), key=lambda pair: pair[0].kind):
        added: dict[int, Learning] = {}
        for row, learning in group:
            number = stored.find(learning, row.copy_number)
            imported.append(ImportedRow(row=number or 0))
            if number is None:
                added[len(imported) - 1] = learning
                stored.add(learning)
        numbers = tx.learnings.add(list(added.values())) if added else []
        for place, number in zip(added, numbers, strict=True):
            imported[place] = ImportedRow(is_added=True, row=number)
    return imported


# Publishes


def _add_request(tx: Tx, row: TransferredRequest, now: int) -> ImportedRow:
    if stored := tx.requests.get(row.request_id):
        if stored.user_id != row.user_id:
            return ImportedRow(reason=f"The request id {row.request_id!r} is taken by another user's publish.")
        numbers = tx.transfers.turn_numbers(row.request_id)
        # Where turns were deleted since, it is not known which are left.
        return ImportedRow(turns=numbers if len(numbers) == len(row.turns) else [])
    request = Request(**row.model_dump(exclude={"turns"}))
    try:
        tx.requests.add(request)
    except Conflict as error:
        return ImportedRow(reason=str(error))
    numbers = tx.transfers.add_turns(request, row.turns) if row.turns else []
    if not request.evaluation_only and not all(turn.is_learned for turn in row.turns):
        tx.users.mark_unlearned(request.user_id, now)
    return ImportedRow(is_added=True, turns=numbers)


# What learnings refer to


def _add_links(tx: Tx, links: TransferredLinks) -> ImportedRow:
    learning = tx.learnings.many([links.learning]).get(links.learning)
    if learning is None:
        return ImportedRow(reason=f"There is no learning {links.learning}.")
    if tx.learnings.lineage(learning.id) or set(links.details) & set(learning.details):
        return ImportedRow(row=learning.id)
    if links.details:
        tx.learnings.replace(dataclasses.replace(learning, details={**learning.details, **links.details}))
    events = [LineageEvent(learning.id, learning.kind, **event.model_dump()) for event in links.events]
    tx.learnings.note(*events)
    return ImportedRow(is_added=bool(links.details or events), row=learning.id)


def _add_pool(tx: Tx, row: TransferredPool, now: int) -> ImportedRow:
    """The clusters of a pool that has none here. Another pool keeps its own and takes up what is new."""
    pool = tx.pools.get(row.agent_version, row.name)
    if pool.clusters:
        members = tx.learnings.many([member for cluster in row.clusters for member in cluster.members])
        new = [member for member in members.values() if member.kind is Kind.USER_PLAYBOOK and not member.cluster]
        if new:
            tx.pools.mark(row.agent_version, row.name, len(new), now)
        return ImportedRow()
    numbers = {member: cluster.number for cluster in row.clusters for member in cluster.members}
    tx.pools.assign(numbers)
    last = max((cluster.number for cluster in row.clusters), default=0)
    tx.pools.put(Pool(pool.org_id, row.agent_version, row.name, clusters=last))
    tx.pools.put_clusters(row.agent_version, row.name, *_clusters(tx, row))
    return ImportedRow(is_added=True)


def _clusters(tx: Tx, row: TransferredPool) -> list[Cluster]:
    """Each cluster as the learner has summarised it, so that it is not summarised once more."""
    members = tx.pools.members(row.agent_version, row.name, "")
    clusters = []
    for cluster in row.clusters:
        own = [member for member in members if member.cluster == cluster.number]
        written = fingerprint(own) if cluster.agent_playbook else ""
        users = len({member.user_id for member in own})
        clusters.append(
            Cluster(
                cluster.number,
                cluster.agent_playbook,
                written,
                size=len(own),
                statements=len(own),
                users=users,
            )
        )
    return clusters
