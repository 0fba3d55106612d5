"""Rerun: everything that was said is learned from once more, beside what is current, for an upgrade to choose.

One durable workflow an operation, user after user. A user's new rows, the end of the old ones and the user's entry
in the operation are one transaction, so that a crash leaves each user done or not.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from uuid import uuid4

from reflexio.errors import Conflict, NotFound, ProviderError, ProviderRefused, ReflexioError
from reflexio.learning.rerun import OPERATION, Draft, Lesson
from reflexio.models.config import Config
from reflexio.models.generation import RerunPlaybookGenerationRequest, RerunProfileGenerationRequest
from reflexio.models.learning import Kind
from reflexio.models.operation import Operation
from reflexio.ports.storage import Store, TimeRange, TurnScope, Tx
from reflexio.ports.work import Json, Steps
from reflexio.usecases import operations
from reflexio.usecases.browse import time_range
from reflexio.usecases.configure import stored
from reflexio.usecases.learn import Classroom
from reflexio.usecases.patience import Pause, patient
from reflexio.usecases.spend import allowed

log = logging.getLogger("reflexio.rerun")

WORKFLOW = "rerun"
SERVICES = {Kind.PROFILE: "profile_generation", Kind.USER_PLAYBOOK: "playbook_generation"}
NOTHING = "No interactions found matching the specified filters"
BUDGET = "The daily token budget is used up; raise it, or run this again tomorrow."


@dataclass(frozen=True)
class Again:
    """What is learned once more, and the operation that tells how far it is."""

    operation_id: str
    org_id: str
    kind: Kind
    scope: TurnScope

    def json(self) -> Json:
        return asdict(self)

    @classmethod
    def read(cls, data: Json) -> "Again":
        within = TimeRange(**data["scope"]["within"])
        return cls(
            data["operation_id"], data["org_id"], Kind(data["kind"]), TurnScope(**{**data["scope"], "within": within})
        )


def profiles(asked: RerunProfileGenerationRequest) -> TurnScope:
    within = time_range(asked.start_time, asked.end_time)
    return TurnScope(user_id=asked.user_id, source=asked.source or None, within=within)


def playbooks(asked: RerunPlaybookGenerationRequest) -> TurnScope:
    within = time_range(asked.start_time, asked.end_time)
    return TurnScope(agent_version=asked.agent_version, source=asked.source or None, within=within)


def begin(tx: Tx, kind: Kind, scope: TurnScope, params: Json, now: int) -> tuple[Operation, list[str]]:
    """An operation over the users whom the scope reaches. Raises NotFound when there are none.

    Raises Conflict while another one is in progress, and when today's budget is used up.
    """
    users = tx.interactions.users(scope)
    if not users:
        raise NotFound.told(NOTHING, what="interaction", id="")
    if not allowed(tx, stored(tx), now):
        raise Conflict(BUDGET)
    made = operations.begin(tx, SERVICES[kind], str(uuid4()), params, now, total_users=len(users))
    return made, users


@dataclass
class Reruns:
    """Begins reruns, and does their work."""

    classroom: Classroom
    pause: Pause = asyncio.sleep
    _watching: set["asyncio.Task[None]"] = field(default_factory=set)

    def register(self) -> None:
        self.classroom.work.register(WORKFLOW, self._rerun)

    async def begin(self, store: Store, kind: Kind, scope: TurnScope, params: Json) -> str:
        """Begins one and gives the id of its operation. Raises what `begin` raises."""
        await self.classroom.work.ready()
        now = self.classroom.clock.now()
        made, _ = await store.write(lambda tx: begin(tx, kind, scope, params, now))
        again = Again(made.id, store.org_id, kind, scope)
        key = f"rerun:{store.org_id}:{made.id}"
        await self.classroom.work.enqueue(WORKFLOW, key, again.json(), lane=f"rerun:{store.org_id}/{kind}")
        watch = asyncio.create_task(
            operations.see_through(self.classroom.work, store, self.classroom.clock, key, made.id)
        )
        self._watching.add(watch)
        watch.add_done_callback(self._watching.discard)
        return made.id

    async def _end(self, store: Store, end: Callable[[Tx, int], Operation]) -> None:
        now = self.classroom.clock.now()
        await store.write(lambda tx: end(tx, now))

    async def _rerun(self, steps: Steps, data: Json) -> Json:
        again = Again.read(data)
        store = self.classroom.database.of(again.org_id)
        try:
            complete = await self._users(steps, again, store)
        except Conflict as ended:
            # It was taken for dead, and perhaps another one has begun: what is left is not ours any more.
            log.warning("a rerun stops: %s", ended)
            return {"complete": False}
        except ReflexioError as error:
            why = str(error)
            await self._end(store, lambda tx, now: operations.fail(tx, again.operation_id, why, now))
            return {"complete": False}
        end = operations.finish if complete else operations.stop
        await self._end(store, lambda tx, now: end(tx, again.operation_id, now))
        return {"complete": complete}

    async def _users(self, steps: Steps, again: Again, store: Store) -> bool:
        """All users one after the other; False when somebody asked to stop."""

        async def found() -> Json:
            return {"users": await store.read(lambda tx: tx.interactions.users(again.scope))}

        users = (await steps("users", found))["users"]
        config = await store.read(stored)
        for number, user_id in enumerate(users):
            try:
                again_and_again = patient(steps, str(number), store, self.classroom.clock, OPERATION, self.pause)
                if not await self._user(again_and_again, again, store, config, user_id):
                    return False
            except ProviderRefused as error:
                await self.classroom.refused(store, error)
                await self._failed(store, again, user_id, error)
                raise
            except ProviderError as error:
                await self._failed(store, again, user_id, error)
        return True

    async def _failed(self, store: Store, again: Again, user_id: str, error: ProviderError) -> None:
        now = self.classroom.clock.now()
        await store.write(lambda tx: operations.done(tx, again.operation_id, user_id, now, error=str(error)))

    async def _user(self, steps: Steps, again: Again, store: Store, config: Config, user_id: str) -> bool:
        lesson = Lesson(again.kind, user_id, again.scope, config, store, self.classroom.school(config))
        windows, draft = await lesson.windows(steps), Draft()
        for number in range(len(windows)):
            if not await self._goes_on(store, again, config, user_id):
                return False
            draft = await lesson.learn(steps, number, windows, draft)
        read, now = sum(len(each.turns) for each in windows), self.classroom.clock.now()

        def done(tx: Tx, count: int) -> Operation:
            stats = {"total_generated": count, "total_interactions_processed": read}
            return operations.done(tx, again.operation_id, user_id, now, stats=stats)

        await lesson.keep(steps, draft, done)
        return True

    async def _goes_on(self, store: Store, again: Again, config: Config, user_id: str) -> bool:
        now = self.classroom.clock.now()

        def look(tx: Tx) -> bool:
            if not allowed(tx, config, now):
                raise ReflexioError.told(BUDGET)
            operation = operations.progress(tx, again.operation_id, now, current_user_id=user_id)
            return not operation.cancel_requested

        return await store.write(look)
