"""Manual: the last window of every user in reach is learned from now, into what is current.

Each window is an ordinary one in its user's own lane, durable like all others; the operation around them tells
how far they are.
"""

from dataclasses import dataclass

from reflexio.learning.window import Plan, by_hand, kinds, plans
from reflexio.learning.workflow import Task
from reflexio.models.generation import ManualPlaybookGenerationRequest, ManualProfileGenerationRequest
from reflexio.models.learning import Kind
from reflexio.ports.storage import Store, TurnScope, Tx
from reflexio.ports.work import Json
from reflexio.usecases import operations
from reflexio.usecases.configure import stored
from reflexio.usecases.learn import Classroom
from reflexio.usecases.rerun import begin

COUNTED = {
    Kind.PROFILE: ("profiles_added", "profiles_updated"),
    Kind.USER_PLAYBOOK: ("playbooks_added", "playbooks_updated"),
}


@dataclass(frozen=True)
class Generated:
    """How many learnings are new or changed, and of how many users the windows failed."""

    count: int = 0
    failed_users: int = 0


@dataclass(frozen=True)
class Manual:
    """One run by hand."""

    classroom: Classroom
    store: Store
    kind: Kind
    scope: TurnScope
    operation_id: str

    async def enqueue(self, user_id: str) -> list[Task]:
        tasks = [self._task(user_id, each) for each in await self.store.read(lambda tx: self._plans(tx, user_id))]
        for task in tasks:
            await self.classroom.enqueue(task)
        return tasks

    def _plans(self, tx: Tx, user_id: str) -> list[Plan]:
        config = stored(tx)
        turns = tx.interactions.within(self.scope, user_id, last=config.window_size)
        return [each for each in plans(turns, config) if kinds(by_hand(config, each.source, self.kind))]

    def _task(self, user_id: str, due: Plan) -> Task:
        key = f"manual:{self.store.org_id}:{self.operation_id}:{user_id}:{due.turns[0]}"
        return Task(
            key,
            self.store.org_id,
            user_id,
            due.turns,
            due.agent_version,
            due.source,
            due.request_id,
            by_hand=self.kind.value,
        )

    async def finish(self, user_id: str, tasks: list[Task]) -> int:
        """Waits for a user's windows and notes what came of them."""
        jobs = [await self.classroom.work.wait(task.key) for task in tasks]
        counts = [job.result or {} for job in jobs]
        generated = sum(int(each.get(name, 0)) for each in counts for name in COUNTED[self.kind])
        stats = {"total_generated": generated, "total_interactions_processed": sum(len(each.turns) for each in tasks)}
        error = next((job.error or job.state for job in jobs if job.state != "done"), "")
        now = self.classroom.clock.now()
        await self.store.write(
            lambda tx: operations.done(tx, self.operation_id, user_id, now, error=error, stats=stats)
        )
        return generated

    async def is_cancelled(self, user_id: str) -> bool:
        now = self.classroom.clock.now()
        seen = await self.store.write(
            lambda tx: operations.progress(tx, self.operation_id, now, current_user_id=user_id)
        )
        return seen.cancel_requested


def profiles(asked: ManualProfileGenerationRequest) -> TurnScope:
    return TurnScope(user_id=asked.user_id, source=asked.source or None)


def playbooks(asked: ManualPlaybookGenerationRequest) -> TurnScope:
    return TurnScope(agent_version=asked.agent_version, source=asked.source or None)


async def generate(classroom: Classroom, store: Store, kind: Kind, scope: TurnScope, params: Json) -> Generated:
    """Learns now, and answers when all is done. Raises what `rerun.begin` raises."""
    await classroom.work.ready()
    now = classroom.clock.now()
    made, users = await store.write(lambda tx: begin(tx, kind, scope, params, now))
    run = Manual(classroom, store, kind, scope, made.id)
    # All of them first: what was asked for is learned even if this process ends before it is done.
    tasks = {user_id: await run.enqueue(user_id) for user_id in users}
    generated = 0
    for user_id, theirs in tasks.items():
        if await run.is_cancelled(user_id):
            for task in (task for some in tasks.values() for task in some):
                await classroom.work.cancel(task.key)
            ended = await store.write(lambda tx: operations.stop(tx, made.id, classroom.clock.now()))
            return Generated(generated, ended.failed_users)
        generated += await run.finish(user_id, theirs)
    ended = await store.write(lambda tx: operations.finish(tx, made.id, classroom.clock.now()))
    return Generated(generated, ended.failed_users)
