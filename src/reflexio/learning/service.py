"""The verbs of learning that callers wait for: learn one publish now, run manually, and ask how far learning is."""

from dataclasses import dataclass
from uuid import uuid4

from reflexio.errors import Conflict, NotFound, NoWorker
from reflexio.jobs import operations
from reflexio.jobs.operations import OperationRun
from reflexio.jobs.token_budget import USED_UP, allowed
from reflexio.learning.scheduler import LearningScheduler, window_task
from reflexio.learning.window import PlannedWindow, WindowTask, consecutive_windows, kinds, manual_types
from reflexio.models.interaction import MOST_INTERACTIONS, LearningStatusResponse, PublishResponse
from reflexio.models.learning import Kind
from reflexio.models.operation import ManualPlaybookGenerationRequest, ManualProfileGenerationRequest, Operation
from reflexio.organisations.configuration import stored_config
from reflexio.organisations.usage import is_within_budget
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Store, TurnScope, Tx, Waiting
from reflexio.ports.work import Json, Work

COUNTS = {
    Kind.PROFILE: ("profiles_added", "profiles_updated"),
    Kind.USER_PLAYBOOK: ("playbooks_added", "playbooks_updated"),
}
OPERATION_NAMES = {Kind.PROFILE: "profile_generation", Kind.USER_PLAYBOOK: "playbook_generation"}
NO_TURNS = "No interactions found matching the specified filters"


@dataclass(frozen=True)
class Generated:
    """How many learnings are new or changed, and for how many users a window failed."""

    count: int = 0
    failed_users: int = 0


def manual_profile_scope(request: ManualProfileGenerationRequest) -> TurnScope:
    return TurnScope(user_id=request.user_id, source=request.source or None)


def manual_playbook_scope(request: ManualPlaybookGenerationRequest) -> TurnScope:
    return TurnScope(agent_version=request.agent_version, source=request.source or None)


def begin_generation(
    tx: Tx, kind: Kind, scope: TurnScope, params: Json, operation_id: str, now: int
) -> tuple[Operation, list[str]]:
    """An operation over the users with turns in the scope. Raises NotFound when there are none.

    Raises Conflict while another one is in progress, and when today's budget is used up.
    """
    users = tx.interactions.users(scope)
    if not users:
        raise NotFound.with_message(NO_TURNS, what="interaction", id="")
    if not is_within_budget(tx, now):
        raise Conflict(USED_UP)
    return operations.begin(tx, OPERATION_NAMES[kind], operation_id, params, now, total_users=len(users)), users


@dataclass
class LearningService:
    """Learning that a caller asks for."""

    work: Work
    clock: Clock
    scheduler: LearningScheduler

    async def learn_publish(self, store: Store, user_id: str, response: PublishResponse) -> PublishResponse:
        """Learns exactly the turns of one publish; the response says what came of it."""
        try:
            await self.work.ready()
            return await self._learn_publish(store, user_id, response)
        except NoWorker as error:
            return response.model_copy(update={"learning_reason": str(error)})
        finally:
            await store.write(lambda tx: tx.users.reserve(user_id, 0))

    async def _learn_publish(self, store: Store, user_id: str, response: PublishResponse) -> PublishResponse:
        def plan(tx: Tx) -> tuple[list[PlannedWindow], int]:
            turns = tx.interactions.unlearned(user_id, MOST_INTERACTIONS, request_id=response.request_id)
            waiting = tx.users.waiting(user_id)
            return consecutive_windows(turns, stored_config(tx)) if turns else [], waiting.attempts if waiting else 0

        def respond(**values: str) -> PublishResponse:
            shown = {name: counts.get(name, 0) for names in COUNTS.values() for name in names}
            return response.model_copy(update={**values, **shown})

        counts: dict[str, int] = {}
        windows, attempts = await store.read(plan)
        for window in windows:
            if not await store.read(lambda tx: is_within_budget(tx, self.clock.now())):
                return respond(learning_reason="the daily token budget is used up")
            task = window_task(store.org_id, user_id, window, attempt=attempts)
            await self.scheduler.enqueue(task)
            job = await self.work.wait(task.key)
            if job.state != "done":
                await self.scheduler.record_failure(task, attempts, job)
                return respond(learning_status="failed", learning_reason=job.error or job.state)
            for name, count in (job.result or {}).items():
                counts[name] = counts.get(name, 0) + int(count)
        return respond(learning_status="done", learning_reason="covered")

    async def run_manually(self, store: Store, kind: Kind, scope: TurnScope, params: Json) -> Generated:
        """Learns the last window of every user in the scope, and returns when all are done.

        Each window is an ordinary job in its user's lane; the operation reports their progress. Raises what
        `begin_generation` raises.
        """
        await self.work.ready()
        operation_id, now = str(uuid4()), self.clock.now()
        _, users = await store.write(lambda tx: begin_generation(tx, kind, scope, params, operation_id, now))
        operation = OperationRun(store, self.clock, operation_id, lambda tx, now: True)
        # All are enqueued first: they are learned even if this process ends before they are done.
        tasks = {user_id: await self._enqueue_manual(store, kind, scope, operation_id, user_id) for user_id in users}
        generated = 0
        for user_id, user_tasks in tasks.items():
            count = None
            if await operation.heartbeat(user_id):
                count = await operation.unless_cancelled(self._finish_user(operation, kind, user_id, user_tasks))
            if count is None:
                for task in (task for each_users in tasks.values() for task in each_users):
                    await self.work.cancel(task.key)
                ended = await store.write(lambda tx: operations.stop(tx, operation_id, self.clock.now()))
                return Generated(generated, ended.failed_users)
            generated += count
        ended = await store.write(lambda tx: operations.finish(tx, operation_id, self.clock.now()))
        return Generated(generated, ended.failed_users)

    async def _enqueue_manual(
        self, store: Store, kind: Kind, scope: TurnScope, operation_id: str, user_id: str
    ) -> list[WindowTask]:
        def plan(tx: Tx) -> list[PlannedWindow]:
            config = stored_config(tx)
            windows = consecutive_windows(tx.interactions.within(scope, user_id, last=config.window_size), config)
            return [window for window in windows if kinds(manual_types(config, window.source, kind))]

        tasks = []
        for window in await store.read(plan):
            key = f"manual:{store.org_id}:{operation_id}:{window.turns[0]}"
            place = (window.turns, window.agent_version, window.source, window.request_id)
            tasks.append(WindowTask(key, store.org_id, user_id, *place, by_hand=kind.value))
            await self.scheduler.enqueue(tasks[-1])
        return tasks

    async def _finish_user(self, operation: OperationRun, kind: Kind, user_id: str, tasks: list[WindowTask]) -> int:
        jobs = [await self.work.wait(task.key) for task in tasks]
        results = [job.result or {} for job in jobs]
        generated = sum(int(result.get(name, 0)) for result in results for name in COUNTS[kind])
        turns = sum(len(task.turns) for task in tasks)
        stats = {"total_generated": generated, "total_interactions_processed": turns}
        error = next((job.error or job.state for job in jobs if job.state != "done"), "")
        await operation.record_user(user_id, error=error, stats=stats)
        return generated


async def learning_status(store: Store, clock: Clock, request_id: str) -> LearningStatusResponse:
    """How far the turns of one publish are learned. Raises NotFound."""
    now = clock.now()

    def read(tx: Tx) -> LearningStatusResponse:
        request = tx.requests.get(request_id)
        if request is None:
            raise NotFound(what="request", id=request_id)
        if request.evaluation_only:
            return LearningStatusResponse(status="not_tracked", reason="not_applicable")
        turns = [turn.interaction_id for turn in tx.interactions.of_requests([request_id])]
        if not turns:
            return LearningStatusResponse(status="not_tracked", reason="inputs_erased")
        if tx.interactions.count_unlearned(request_id) == 0:
            windows = tx.windows.of_turns(request.user_id, turns)
            errors = [window.error for window in windows if window.state == "set_aside"]
            status, reason = ("failed", errors[0]) if errors else ("done", "covered")
            return LearningStatusResponse(status=status, reason=reason)
        return LearningStatusResponse(status="pending", reason=_why_pending(tx, tx.users.waiting(request.user_id), now))

    return await store.read(read)


def _why_pending(tx: Tx, waiting: Waiting | None, now: int) -> str:
    if tx.stalls.get():
        return "stalled"
    if not allowed(tx, stored_config(tx), now):
        return "budget_used_up"
    return "retrying" if waiting is not None and waiting.attempts > 0 else "queued"
