"""Operations: what runs and what ran, with live progress; beginning one, cancelling one, and what reruns have left."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

from starlette.responses import Response, StreamingResponse

from reflexio.dashboard.forms import parse
from reflexio.dashboard.routing import Pages
from reflexio.dashboard.visit import Form, Visit
from reflexio.errors import Conflict, InvalidRequest, NotFound
from reflexio.interactions.sessions import agent_versions
from reflexio.jobs import operations
from reflexio.learning import rerun, upgrade
from reflexio.models.access import KeyScope
from reflexio.models.learning import Kind, Status
from reflexio.models.operation import (
    DowngradeProfilesRequest,
    DowngradeUserPlaybooksRequest,
    Operation,
    OperationStatusInfo,
    RerunPlaybookGenerationRequest,
    RerunProfileGenerationRequest,
    UpgradeProfilesRequest,
    UpgradeUserPlaybooksRequest,
)
from reflexio.models.review import RunPlaybookAggregationRequest
from reflexio.ports.storage import LearningFilter, Tx

pages = Pages()

SHOWN = 50
POLL_SECONDS, QUIET_POLLS = 0.5, 20
"""Time between two reads of an operation that a page follows; reads without news before a sign of life."""
NAMES = {
    "playbook_aggregation": "Aggregation",
    "automatic_playbook_aggregation": "Automatic aggregation",
    "profile_generation": "Rerun of profiles",
    "playbook_generation": "Rerun of user playbooks",
}
STATS = {
    "user_playbooks_processed": "user playbooks read",
    "clusters_found": "clusters",
    "total_generated": "learnings made",
}
KINDS = {"profiles": Kind.PROFILE, "user_playbooks": Kind.USER_PLAYBOOK}


@dataclass(frozen=True)
class ShownOperation:
    """An operation as callers see it, with its id and a name for people."""

    id: str
    name: str
    info: OperationStatusInfo
    is_cancelling: bool = False

    @property
    def words(self) -> str:
        return progress_words(self.info)

    @property
    def counts(self) -> list[tuple[str, int]]:
        return [(STATS.get(name, name.replace("_", " ")), count) for name, count in self.info.stats.items()]


@dataclass(frozen=True)
class Generation:
    """What reruns have made of one kind, and what was current before: an upgrade or a downgrade swaps them."""

    kind: str
    name: str
    pending: int
    archived: int


@pages.get("/operations", KeyScope.READ)
async def operations_list(visit: Visit) -> Response:
    """The newest operations, what reruns have left to decide about, and the forms that begin one."""

    def read(tx: Tx) -> tuple[list[ShownOperation], list[Generation]]:
        newest = [_shown(tx, operation, visit.now) for operation in tx.operations.newest(SHOWN)]
        return newest, [_generation(tx, kind) for kind in KINDS]

    newest, generations = await visit.store.read(read)
    versions = await agent_versions(visit.store)
    return visit.page(
        "operations.html",
        operations=newest,
        generations=generations,
        versions=[(version, version) for version in versions],
        is_running=any(not operation.info.has_ended for operation in newest),
    )


@pages.get("/operations/{operation}", KeyScope.READ)
async def operation_page(visit: Visit) -> Response:
    """One operation, with the users that are done and those that failed."""
    operation = await visit.store.read(
        lambda tx: _shown(tx, operations.get(tx, visit.part("operation")), visit.now, users=operations.USERS_SHOWN)
    )
    return visit.page("operation.html", operation=operation)


@pages.get("/operations/{operation}/events", KeyScope.READ)
async def events(visit: Visit) -> Response:
    """The progress as server-sent events, for the page that shows it."""
    operation_id = visit.part("operation")
    await visit.store.read(lambda tx: operations.get(tx, operation_id))
    state = visit.request.scope["app"].state

    async def pause() -> bool:
        await asyncio.sleep(POLL_SECONDS)
        return not state.stopping

    updates = operations.follow(visit.store, visit.parts.clock, operation_id, pause)
    return StreamingResponse(_stream(updates), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _stream(updates: AsyncIterator[OperationStatusInfo | None]) -> AsyncIterator[str]:
    quiet = 0
    async for update in updates:
        quiet = 0 if update else quiet + 1
        if update:
            told = {
                "status": update.status.value,
                "percentage": update.progress_percentage,
                "words": progress_words(update),
                "has_ended": update.has_ended,
            }
            yield f"event: progress\ndata: {json.dumps(told)}\n\n"
        elif quiet % QUIET_POLLS == 0:
            yield ": still at it\n\n"


def progress_words(info: OperationStatusInfo) -> str:
    """How far an operation is, in words."""
    done = info.processed_users + info.failed_users
    users = f"{done:,} of {info.total_users:,} done" if info.total_users else ""
    failed = f"{info.failed_users:,} failed" if info.failed_users else ""
    counts = [f"{count:,} {STATS.get(name, name.replace('_', ' '))}" for name, count in info.stats.items() if count]
    return ", ".join(words for words in (users, failed, *counts) if words) or "begun"


@pages.post("/operations/cancel", KeyScope.REVIEW)
async def cancel(visit: Visit) -> Response:
    """Asks the running operation of a service to stop after its current window."""
    form = await visit.form()
    service = form.get("service", "")
    cancelled = await visit.store.write(lambda tx: operations.cancel(tx, service or None, visit.now))
    words = "It stops after what it is at." if cancelled else "Nothing of that kind runs any more."
    return visit.go("/operations", words)


@pages.post("/operations/aggregate", KeyScope.REVIEW)
async def aggregate(visit: Visit) -> Response:
    """Summarises what the users of one agent version taught into proposals for review."""
    form = await visit.form()
    request = parse(RunPlaybookAggregationRequest, {"agent_version": form.get("version", "")})
    params = request.model_dump(mode="json", exclude_none=True)
    try:
        run = await visit.parts.aggregation.begin(visit.store, request.agent_version, request.type_among, params)
    except Conflict as error:
        return visit.go("/operations", str(error))
    return visit.go(f"/operations/{run.operation_id}")


@pages.post("/operations/rerun", KeyScope.REVIEW)
async def learn_again(visit: Visit) -> Response:
    """Learns again from stored turns. What comes of it is pending until somebody makes it current."""
    form = await visit.form()
    try:
        operation_id = await _begin_rerun(visit, form)
    except (Conflict, NotFound) as error:
        return visit.go("/operations", str(error))
    return visit.go(f"/operations/{operation_id}")


async def _begin_rerun(visit: Visit, form: Form) -> str:
    kind, only_unread = _kind(form), form.get("only_unread") == "yes"
    if kind is Kind.PROFILE:
        profiles = parse(
            RerunProfileGenerationRequest, {"user_id": form.get("user") or None, "only_unread": only_unread}
        )
        params = profiles.model_dump(mode="json", exclude_none=True)
        return await visit.parts.reruns.begin(visit.store, kind, rerun.profile_scope(profiles), params)
    playbooks = parse(
        RerunPlaybookGenerationRequest, {"agent_version": form.get("version", ""), "only_unread": only_unread}
    )
    params = playbooks.model_dump(mode="json", exclude_none=True)
    return await visit.parts.reruns.begin(visit.store, kind, rerun.playbook_scope(playbooks), params)


@pages.post("/operations/upgrade", KeyScope.REVIEW)
async def make_current(visit: Visit) -> Response:
    """Makes what reruns have learned current, and archives what was."""
    kind = _kind(await visit.form())
    if kind is Kind.PROFILE:
        scope = upgrade.profile_scope(UpgradeProfilesRequest())
    else:
        scope = upgrade.user_playbook_scope(UpgradeUserPlaybooksRequest())
    counts = await visit.store.write(lambda tx: upgrade.upgrade(tx, scope, visit.now))
    return visit.go("/operations", f"{counts.promoted:,} are current now; {counts.archived:,} were archived.")


@pages.post("/operations/downgrade", KeyScope.REVIEW)
async def bring_back(visit: Visit) -> Response:
    """Swaps what is current and what was archived."""
    kind = _kind(await visit.form())
    if kind is Kind.PROFILE:
        scope = upgrade.profile_scope(DowngradeProfilesRequest())
    else:
        scope = upgrade.user_playbook_scope(DowngradeUserPlaybooksRequest())
    counts = await visit.store.write(lambda tx: upgrade.downgrade(tx, scope, visit.now))
    return visit.go("/operations", f"{counts.restored:,} are current again; {counts.demoted:,} were archived.")


def _kind(form: Form) -> Kind:
    kind = KINDS.get(form.get("kind", ""))
    if kind is None:
        raise InvalidRequest(f"Choose a kind: {', '.join(KINDS)}.")
    return kind


def _shown(tx: Tx, operation: Operation, now: int, *, users: int = 0) -> ShownOperation:
    info = operations.describe(tx, operation, now, users=users)
    name = NAMES.get(operation.service_name, operation.service_name.replace("_", " ").capitalize())
    return ShownOperation(operation.id, name, info, operation.cancel_requested)


def _generation(tx: Tx, kind: str) -> Generation:
    pending = tx.learnings.count(LearningFilter(KINDS[kind], statuses=(Status.PENDING,)))
    archived = tx.learnings.count(LearningFilter(KINDS[kind], statuses=(Status.ARCHIVED,)))
    return Generation(kind, kind.replace("_", " "), pending, archived)
