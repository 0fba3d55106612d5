"""Durable work on DBOS, with SQLite beside the data.

DBOS keeps jobs and finished steps, and hands out jobs by lane. It lives on threads and a loop of its own, because it
takes over the default executor of any loop it runs on; workflows and their steps run on the loop that called `start`.
"""

import asyncio
import logging
import os
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import URL, Engine, QueuePool, create_engine, event

from reflexio.engine.bell import Bell
from reflexio.engine.lanes import Lanes
from reflexio.engine.sole import Sole
from reflexio.engine.steps import (
    Act,
    NamedSteps,
    Outcome,
    Registered,
    answer_of,
    as_text,
    changed,
    outcome_of,
    unregistered,
)
from reflexio.errors import InvalidRequest, NotFound, StorageReadOnly, StorageTaken
from reflexio.ports.work import Job, Json, State, Workflow

if TYPE_CHECKING:
    from dbos import DBOS, DBOSConfig, StepInfo, WorkflowStatus

T = TypeVar("T")

log = logging.getLogger("reflexio")

APPLICATION = "reflexio"
QUEUE = "lanes"
JOB = "job"
LOST = "lost"
# Both never change. DBOS gives a job only to the version that it was asked under and recovers only what its own
# executor left; ours is always the same one (`Sole`), and each workflow has a version of its own.
VERSION = "1"
EXECUTOR = "sole"
ENDED = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
UNFINISHED = ["ENQUEUED", "PENDING"]
MOST_RECOVERIES = 50
"""A job that was under way each time the process died is set aside after so many deaths."""
POLL = 1.0
GRACE = 1.5
RECHECK = 5.0
BATCH = 500
THREADS = 4
PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    "busy_timeout=30000",
)

_running = threading.Lock()
"""DBOS is one to a process, and so are we."""


class DbosWork:
    """`path` is the database of jobs and steps; nothing else may be kept in it."""

    def __init__(self, path: Path, *, concurrency: int = 8, patience: float = 5.0) -> None:
        self._path = path
        self._concurrency = concurrency
        self._patience = patience
        self._workflows: dict[str, Registered] = {}
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="reflexio-work")
        self._bell = Bell()
        self._asking = threading.Lock()
        self._asked = 0
        self._running: dict[str, asyncio.Task[Any]] = {}
        self._acting: set[asyncio.Task[Any]] = set()
        self._cancelled: set[str] = set()
        self._told: defaultdict[str, list[asyncio.Event]] = defaultdict(list)
        self._closing = False
        self._open = False

    def register(self, name: str, workflow: Workflow, *, version: int = 1) -> None:
        self._workflows[name] = Registered(workflow, version)

    async def start(self) -> None:
        self._main = asyncio.get_running_loop()
        self._lanes = Lanes(self._concurrency)
        await self._off_loop(self._launch)

    async def enqueue(self, name: str, key: str, data: Json, *, lane: str) -> Job:
        if name not in self._workflows:
            raise NotFound(what="workflow", id=name)
        if not key.strip() or not lane:
            raise InvalidRequest("A job needs a key and a lane.")
        as_text(data)
        job = await self._off_loop(self._ask, name, key, data, lane)
        self._bell.ring()
        return job

    async def wait(self, key: str) -> Job:
        told = asyncio.Event()
        self._told[key].append(told)
        try:
            while True:
                job = await self.get(key)
                if job is None:
                    raise NotFound(what="job", id=key)
                if job.state not in ("queued", "running"):
                    return job
                await _first(told, RECHECK)
                told.clear()
        finally:
            self._told[key].remove(told)
            if not self._told[key]:
                del self._told[key]

    async def get(self, key: str) -> Job | None:
        return await self._off_loop(self._look_up, key)

    async def cancel(self, key: str) -> bool:
        job = await self.get(key)
        if job is None or job.state not in ("queued", "running"):
            return False
        await self._off_loop(self._dbos.cancel_workflow, key)
        if key in self._running:
            self._cancelled.add(key)
        self._tell(key)
        self._bell.ring()
        job = await self.get(key)
        return job is not None and job.state == "cancelled"

    async def forget(self, before: int) -> int:
        forgotten = 0
        while found := await self._off_loop(self._forget_some, before):
            forgotten += found
        return forgotten

    async def close(self) -> None:
        if not self._open:
            self._threads.shutdown(wait=False)
            return
        self._closing = True
        self._bell.stop()
        await _all(self._running.values(), GRACE)
        for task in [*self._acting, *self._running.values()]:
            task.cancel()
        await _all([*self._acting, *self._running.values()], GRACE)
        await self._off_loop(self._shut_down)
        self._threads.shutdown()

    # On the threads: DBOS's synchronous interface, outside any workflow's context.

    async def _off_loop(self, fn: Callable[..., T], *values: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, fn, *values)

    def _launch(self) -> None:
        if not _running.acquire(blocking=False):
            raise StorageTaken("This process has opened another one.", path=str(self._path.parent))
        try:
            _make_private(self._path)
            self._sole = Sole(self._path.with_name(f"{self._path.name}.lock"), patience=self._patience)
            try:
                self._launch_dbos()
            except BaseException:
                self._sole.release()
                raise
        except BaseException:
            _running.release()
            raise
        self._open = True

    def _launch_dbos(self) -> None:
        _quieten()
        from dbos import DBOS
        from dbos._queue import queue_worker_thread

        self._dbos = DBOS
        self._engine = _system_engine(self._path, self._concurrency)
        instance = DBOS(config=_config(self._path, self._engine))
        DBOS.workflow(name=JOB, max_recovery_attempts=MOST_RECOVERIES)(self._workflow())
        # DBOS's own thread for a queue only polls. The same function on a thread of ours wakes when the bell rings.
        DBOS.listen_queues([])
        DBOS.launch()
        queue = DBOS.register_queue(
            QUEUE,
            worker_concurrency=self._concurrency,
            partition_concurrency=1,
            polling_interval_sec=POLL,
            on_conflict="always_update",
        )
        self._asked = max((each.priority or 0 for each in self._unfinished()), default=0)
        self._worker = threading.Thread(
            target=queue_worker_thread, args=(self._bell, instance, queue), name="reflexio-lanes", daemon=True
        )
        self._worker.start()

    def _unfinished(self) -> "list[WorkflowStatus]":
        return self._dbos.list_workflows(status=UNFINISHED, load_input=False, load_output=False)

    def _shut_down(self) -> None:
        self._worker.join()
        self._dbos.destroy(destroy_registry=True)
        self._engine.dispose()
        self._sole.release()
        _running.release()

    def _ask(self, name: str, key: str, data: Json, lane: str) -> Job:
        # Its place in the lane is its priority: DBOS's own order is the clock's, which stands still for a whole
        # second on Python 3.11 and may go backwards on any.
        with self._asking:
            self._asked += 1
            self._dbos.enqueue_workflow_with_options(
                {
                    "workflow_name": JOB,
                    "queue_name": QUEUE,
                    "workflow_id": key,
                    "queue_partition_key": lane,
                    "priority": self._asked,
                },
                name,
                lane,
                data,
            )
        job = self._look_up(key)
        assert job is not None
        return job

    def _look_up(self, key: str) -> Job | None:
        found = self._dbos.get_workflow_status(key)
        return None if found is None else self._job(found)

    def _job(self, found: "WorkflowStatus") -> Job:
        name = found.input["args"][0] if found.input else ""
        match found.status:
            case "SUCCESS":
                return Job(found.workflow_id, name, **found.output)
            case "CANCELLED":
                return Job(found.workflow_id, name, "cancelled")
            case "ERROR":
                return Job(found.workflow_id, name, "failed", error=str(found.error))
            case "MAX_RECOVERY_ATTEMPTS_EXCEEDED":
                error = f"The process died {MOST_RECOVERIES} times while this was under way."
                return Job(found.workflow_id, name, "failed", error=error)
            case _:
                state: State = "running" if found.workflow_id in self._running else "queued"
                return Job(found.workflow_id, name, state)

    def _forget_some(self, before: int) -> int:
        moment = datetime.fromtimestamp(before, UTC).isoformat()
        old = self._dbos.list_workflows(
            status=ENDED, completed_before=moment, limit=BATCH, load_input=False, load_output=False
        )
        if old:
            self._dbos.delete_workflows([each.workflow_id for each in old])
        return len(old)

    # On DBOS's loop, and from there on ours.

    def _workflow(self) -> Callable[[str, str, Json], Coroutine[Any, Any, Json]]:
        async def job(name: str, lane: str, data: Json) -> Json:
            key = str(self._dbos.workflow_id)
            task = asyncio.current_task()
            assert task is not None
            # Done is when DBOS has committed the outcome: whoever waits is told what will still be true tomorrow.
            task.add_done_callback(lambda _: self._main.call_soon_threadsafe(self._over, key))
            return await _on(self._main, self._perform(key, name, lane, data, asyncio.get_running_loop()))

        return job

    async def _perform(self, key: str, name: str, lane: str, data: Json, loop: asyncio.AbstractEventLoop) -> Json:
        async with self._lanes.turn(lane):
            task = asyncio.current_task()
            assert task is not None
            self._running[key] = task
            try:
                if self._closing:
                    raise asyncio.CancelledError("closing")
                return asdict(await self._outcome(key, name, data, loop))
            finally:
                del self._running[key]

    async def _outcome(self, key: str, name: str, data: Json, loop: asyncio.AbstractEventLoop) -> Outcome:
        registered = self._workflows.get(name)
        if registered is None:
            return unregistered(name)
        known: dict[str, Json] = {}
        for step in await self._recall(key, loop):
            if step["version"] != registered.version:
                return changed(name, step["version"], registered.version)
            if "answer" in step:
                known[step["name"]] = step["answer"]
        steps = NamedSteps(
            known, self._keeper(registered.version, loop), lambda: self._closing or key in self._cancelled
        )
        return await outcome_of(registered.workflow, steps, data, label=f"{name} {key!r}")

    async def _recall(self, key: str, loop: asyncio.AbstractEventLoop) -> list[Json]:
        """What was kept before a crash. DBOS counts steps, we name them: its count is led past all that it kept."""
        kept = {each["function_id"]: each for each in await self._off_loop(self._dbos.list_workflow_steps, key)}
        for number in range(1, max(kept, default=0) + 1):
            await _on(loop, self._pass(kept.get(number)))
        return [
            {**step["output"], "name": step["function_name"]} for step in kept.values() if step["function_name"] != LOST
        ]

    async def _pass(self, step: "StepInfo | None") -> None:
        async def lost() -> Json:
            return {}

        await self._dbos.run_step_async({"name": step["function_name"] if step else LOST}, lost)

    def _keeper(self, version: int, loop: asyncio.AbstractEventLoop) -> Callable[[str, Act], Awaitable[Json]]:
        async def keep(name: str, act: Act) -> Json:
            failures: list[Exception] = []

            async def attempt() -> Json:
                task = asyncio.current_task()
                assert task is not None
                self._acting.add(task)
                try:
                    return {"version": version, "answer": await answer_of(act)}
                except Exception as error:  # noqa: BLE001  raised again below; DBOS would keep and pickle it
                    failures.append(error)
                    return {"version": version, "error": type(error).__name__}
                finally:
                    self._acting.discard(task)

            async def step() -> Json:
                return await _on(self._main, attempt())

            kept = await _on(loop, self._record(name, step))
            if failures:
                raise failures[0]
            answer: Json = kept["answer"]
            return answer

        return keep

    async def _record(self, name: str, step: Callable[[], Coroutine[Any, Any, Json]]) -> Json:
        from dbos import error as dbos_error

        try:
            return await self._dbos.run_step_async({"name": name}, step)
        except (dbos_error.DBOSWorkflowCancelledError, dbos_error.DBOSWorkflowConflictIDError) as error:
            raise asyncio.CancelledError(str(error)) from error

    def _over(self, key: str) -> None:
        self._cancelled.discard(key)
        self._bell.ring()
        self._tell(key)

    def _tell(self, key: str) -> None:
        for told in self._told.get(key, ()):
            told.set()


async def _on(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


async def _first(told: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(told.wait(), seconds)
    except TimeoutError:
        pass


async def _all(tasks: Any, seconds: float) -> None:
    if left := list(tasks):
        await asyncio.wait(left, timeout=seconds)


def _quieten() -> None:
    """DBOS greets, advises and points to its cloud at INFO, on a handler of its own unless there is one."""
    logger = logging.getLogger("dbos")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())


def _config(path: Path, engine: Engine) -> "DBOSConfig":
    return {
        "name": APPLICATION,
        "system_database_url": _url(path).render_as_string(hide_password=False),
        "system_database_engine": engine,
        "application_version": VERSION,
        "executor_id": EXECUTOR,
        "serializer": _serializer(),
        "log_level": "WARNING",
        "enable_otlp": False,
    }


def _serializer() -> Any:
    import json

    from dbos import Serializer

    class PlainJson(Serializer):
        """Not pickle: what stands in a database must not be code."""

        def serialize(self, data: Any) -> str:
            return json.dumps(data, default=str)

        def deserialize(self, serialized_data: str) -> Any:
            return json.loads(serialized_data)

        def name(self) -> str:
            return "reflexio_json"

    return PlainJson()


def _url(path: Path) -> URL:
    return URL.create("sqlite", database=str(path))


def _system_engine(path: Path, concurrency: int) -> Engine:
    engine = create_engine(_url(path), poolclass=QueuePool, pool_size=concurrency + THREADS + 4, max_overflow=-1)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        # As DBOS does with an engine that it makes itself; WAL saves it half of its time.
        connection.isolation_level = "IMMEDIATE"
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")

    return engine


def _make_private(path: Path) -> None:
    """Steps hold what people said: nobody else on the machine reads them."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StorageReadOnly(str(error), path=str(path)) from error
