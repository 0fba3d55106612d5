"""Durable work on DBOS, with SQLite beside the data.

DBOS keeps jobs and finished steps, and hands out jobs by lane. It lives on threads and a loop of its own, because it
takes over the default executor of any loop it runs on; workflows and their steps run on the loop that called `start`.
"""

import asyncio
import logging
import os
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

# DBOS brings the ORM along, in a thread. Half imported, it breaks statements that other threads build meanwhile, so
# it is imported here, where there is one thread.
import sqlalchemy.orm  # noqa: F401
from sqlalchemy import URL, Engine, QueuePool, create_engine, event

from reflexio.engine.bell import Bell
from reflexio.engine.lanes import Lanes
from reflexio.engine.sole import Sole
from reflexio.engine.steps import (
    CLOSED,
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
from reflexio.errors import (
    InvalidRequest,
    NotFound,
    ReflexioError,
    StorageReadOnly,
    StorageTaken,
    StorageUnavailable,
)
from reflexio.ports.work import Job, Json, State, Workflow
from reflexio.storage.faults import explained

if TYPE_CHECKING:
    from dbos import DBOSConfig, StepInfo, WorkflowStatus

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
UNDER_WAY = ("queued", "running")
UNFINISHED = ["ENQUEUED", "PENDING"]
POLL = 10.0
"""For safety alone: whatever changes here rings the bell."""
RECHECK = 5.0
BATCH = 500
THREADS = 4
CONNECTIONS = 4
"""Few: who waits for one is served in turn, who waits for SQLite's lock sleeps at random."""
PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=NORMAL",
    "foreign_keys=ON",
    "busy_timeout=30000",
)

_running = threading.Lock()
"""DBOS is one to a process, and so are we."""


class DbosWork:
    """`path` is the database of jobs and steps; nothing else may be kept in it.

    `patience` is how long `start` waits for another process to let go, `grace` how long `close` waits for the steps
    at hand, both in seconds. A job that was under way at so many `deaths` of the process is set aside as failed.
    """

    def __init__(
        self, path: Path, *, concurrency: int = 8, patience: float = 5.0, grace: float = 1.5, deaths: int = 50
    ) -> None:
        self._path = path
        self._concurrency = concurrency
        self._patience = patience
        self._grace = grace
        self._deaths = deaths
        self._workflows: dict[str, Registered] = {}
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="reflexio-work")
        self._bell = Bell()
        self._asking = threading.Lock()
        self._asked = 0
        self._running: dict[str, asyncio.Task[Any]] = {}
        self._acting: set[asyncio.Task[Any]] = set()
        self._cancelled: set[str] = set()
        # Not begun yet. To look for the next job costs DBOS some milliseconds: nobody looks when there is none.
        self._queued: set[str] = set()
        # Asked for here and not begun yet: nothing to recall.
        self._fresh: set[str] = set()
        # Asked for here and not over: `_over` will tell.
        self._live: set[str] = set()
        self._mending: set[asyncio.Task[None]] = set()
        self._waiting: defaultdict[str, set[asyncio.Future[Job | None]]] = defaultdict(set)
        self._closing = False
        self._starting: asyncio.Task[None] | None = None
        self._started = asyncio.Event()
        self._refusal: ReflexioError | None = None
        self._opened = ExitStack()

    def register(self, name: str, workflow: Workflow, *, version: int = 1) -> None:
        self._workflows[name] = Registered(workflow, version)

    async def start(self) -> None:
        self._main = asyncio.get_running_loop()
        self._lanes = Lanes(self._concurrency)
        self._starting = asyncio.create_task(self._begin())
        # Shielded: a start that is given up half-way is still to be closed.
        await asyncio.shield(self._starting)

    async def _begin(self) -> None:
        try:
            await self._in_thread(self._launch)
            self._refusal = None
        except BaseException as error:
            self._refusal = error if isinstance(error, ReflexioError) else StorageUnavailable(str(error))
            raise
        finally:
            self._started.set()

    async def enqueue(self, name: str, key: str, data: Json, *, lane: str) -> Job:
        if name not in self._workflows:
            raise NotFound(what="workflow", id=name)
        if not key.strip() or not lane:
            raise InvalidRequest("A job needs a key and a lane.")
        as_text(data)
        job = await self._off_loop(self._ask, name, key, data, lane)
        if job is not None:
            return job
        self._bell.ring()
        return Job(key, name, "queued")

    async def wait(self, key: str) -> Job:
        job = None if key in self._live else await self._find(key)
        while job is None or job.state in UNDER_WAY:
            job = await self._news(key) or await self._find(key)
        return job

    async def _find(self, key: str) -> Job:
        job = await self.get(key)
        if job is None:
            raise NotFound(what="job", id=key)
        return job

    async def _news(self, key: str) -> Job | None:
        """The job once it has ended here; nothing when it is time to look whether it ended elsewhere."""
        told: asyncio.Future[Job | None] = self._main.create_future()
        self._waiting[key].add(told)
        try:
            async with asyncio.timeout(RECHECK):
                return await told
        except TimeoutError:
            return None
        finally:
            self._waiting[key].discard(told)
            if not self._waiting[key]:
                del self._waiting[key]

    async def get(self, key: str) -> Job | None:
        return await self._off_loop(self._look_up, key)

    async def cancel(self, key: str) -> bool:
        job = await self.get(key)
        if job is None or job.state not in UNDER_WAY:
            return False
        await self._off_loop(self._dbos.cancel_workflow, key)
        if key in self._running:
            self._cancelled.add(key)
        self._over(key, None)
        job = await self.get(key)
        return job is not None and job.state == "cancelled"

    async def forget(self, before: int) -> int:
        forgotten = 0
        while found := await self._off_loop(self._forget_some, before):
            forgotten += found
        return forgotten

    async def close(self) -> None:
        await asyncio.gather(*filter(None, [self._starting]), return_exceptions=True)
        opened, self._opened = self._opened, ExitStack()
        self._closing = True
        self._bell.stop()
        for task in self._mending:
            task.cancel()
        await _all(self._running.values(), self._grace)
        for task in [*self._acting, *self._running.values()]:
            task.cancel()
        await _all([*self._acting, *self._running.values()], self._grace)
        self._refusal = StorageUnavailable(CLOSED)
        self._started.set()
        for told in [each for waiting in self._waiting.values() for each in waiting if not each.done()]:
            told.set_exception(StorageUnavailable(CLOSED))
        await asyncio.to_thread(opened.close)
        self._threads.shutdown()

    # On the threads: DBOS's synchronous interface, outside any workflow's context.

    async def _off_loop(self, fn: Callable[..., T], *values: Any) -> T:
        await self._started.wait()
        if self._refusal is not None:
            raise self._refusal
        return await self._in_thread(fn, *values)

    async def _in_thread(self, fn: Callable[..., T], *values: Any) -> T:
        def explainable() -> T:
            with explained(str(self._path)):
                return fn(*values)

        return await asyncio.get_running_loop().run_in_executor(self._threads, explainable)

    def _launch(self) -> None:
        with ExitStack() as opened:
            if not _running.acquire(blocking=False):
                raise StorageTaken("This process has opened another one.", path=str(self._path.parent))
            opened.callback(_running.release)
            _make_private(self._path)
            sole = Sole(self._path.with_name(f"{self._path.name}.lock"), patience=self._patience)
            opened.callback(sole.release)
            self._engine = _system_engine(self._path)
            opened.callback(self._engine.dispose)
            # Before DBOS does, which would tell the whole log about a damaged file.
            self._engine.connect().close()
            self._launch_dbos(opened)
            self._opened = opened.pop_all()

    def _launch_dbos(self, opened: ExitStack) -> None:
        _quieten()
        from dbos import DBOS
        from dbos._queue import queue_worker_thread

        self._dbos = DBOS
        instance = DBOS(config=_config(self._path, self._engine))
        opened.callback(DBOS.destroy, destroy_registry=True)
        DBOS.workflow(name=JOB, max_recovery_attempts=self._deaths - 1)(self._workflow())
        # DBOS's own thread for a queue only polls. The same function on a thread of ours wakes when the bell rings.
        DBOS.listen_queues([])
        DBOS.launch()
        self._await_recovery()
        queue = DBOS.register_queue(
            QUEUE,
            worker_concurrency=self._concurrency,
            partition_concurrency=1,
            polling_interval_sec=POLL,
            on_conflict="always_update",
        )
        unfinished = self._listed(UNFINISHED)
        self._asked = max((each.priority or 0 for each in unfinished), default=0)
        self._queued.update(each.workflow_id for each in unfinished)
        worker = threading.Thread(
            target=queue_worker_thread, args=(self._bell, instance, queue), name="reflexio-lanes", daemon=True
        )
        worker.start()
        opened.callback(worker.join)
        self._bell.ring()

    def _await_recovery(self) -> None:
        """DBOS puts what a crash left under way back into its lane, beside us; our first look must find it there."""
        deadline = time.monotonic() + RECHECK
        while self._listed(["PENDING"]) and time.monotonic() < deadline:
            time.sleep(0.01)

    def _listed(self, states: list[str]) -> "list[WorkflowStatus]":
        return self._dbos.list_workflows(status=states, load_input=False, load_output=False)

    def _ask(self, name: str, key: str, data: Json, lane: str) -> Job | None:
        """The job when there is one of that key already; nothing when this is a new one."""
        from dbos import error as dbos_error

        # Its place in the lane is its priority: DBOS's own order is the clock's, which stands still for a whole
        # second on Python 3.11 and may go backwards on any.
        with self._asking:
            self._asked += 1
            if is_new := key not in self._live:
                for keys in (self._queued, self._fresh, self._live):
                    keys.add(key)
            try:
                self._dbos.enqueue_workflow_with_options(
                    {
                        "workflow_name": JOB,
                        "queue_name": QUEUE,
                        "workflow_id": key,
                        "workflow_id_reuse_policy": "reject",
                        "queue_partition_key": lane,
                        "priority": self._asked,
                    },
                    name,
                    lane,
                    data,
                )
                return None
            except BaseException as error:
                if is_new:
                    self._let_go(key)
                if not isinstance(error, dbos_error.DBOSWorkflowIDInUseError):
                    raise
        return self._look_up(key)

    def _look_up(self, key: str) -> Job | None:
        found = self._dbos.get_workflow_status(key)
        return None if found is None else self._job(found)

    def _job(self, found: "WorkflowStatus") -> Job:
        name = found.input["args"][0] if found.input else ""
        match found.status:
            case "SUCCESS":
                return Job(found.workflow_id, name, **(found.output or {}))
            case "CANCELLED":
                return Job(found.workflow_id, name, "cancelled")
            case "ERROR":
                return Job(found.workflow_id, name, "failed", error=str(found.error))
            case "MAX_RECOVERY_ATTEMPTS_EXCEEDED":
                error = f"The process stopped {self._deaths} times while this was under way."
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
            self._queued.discard(key)
            task = asyncio.current_task()
            assert task is not None
            # Done is when DBOS has committed the outcome: whoever waits is told what will still be true tomorrow.
            task.add_done_callback(
                lambda task: self._main.call_soon_threadsafe(self._over, key, _ended(key, name, task))
            )
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
                self._cancelled.discard(key)

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
        if key in self._fresh:
            self._fresh.discard(key)
            return []
        kept = {each["function_id"]: each for each in await self._off_loop(self._dbos.list_workflow_steps, key)}
        for number in range(1, max(kept, default=0) + 1):
            await _on(loop, self._pass(kept.get(number)))
        return [
            {**(step["output"] or {}), "name": step["function_name"]}
            for step in kept.values()
            if step["function_name"] != LOST
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

    def _let_go(self, key: str) -> None:
        for keys in (self._queued, self._fresh, self._live):
            keys.discard(key)

    def _over(self, key: str, job: Job | None) -> None:
        self._let_go(key)
        if self._queued:
            self._bell.ring()
        if job is None and not self._closing:
            self._mending.add(mending := asyncio.create_task(self._mend(key)))
            mending.add_done_callback(self._mending.discard)
        for told in self._waiting.get(key, ()):
            if not told.done():
                told.set_result(job)

    async def _mend(self, key: str) -> None:
        """A job whose end could not be written (a full disk) would hold up its lane until the next start."""
        await asyncio.sleep(RECHECK)
        job = await self.get(key)
        if job is not None and job.state == "queued":
            await self._off_loop(lambda: self._dbos.resume_workflow(key, queue_name=QUEUE))
            self._bell.ring()


def _ended(key: str, name: str, task: "asyncio.Task[Json]") -> Job | None:
    """The job as it was committed, or nothing when only the database knows."""
    if task.cancelled() or task.exception() is not None:
        return None
    return Job(key, name, **task.result())


async def _on(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


async def _all(tasks: Any, seconds: float) -> None:
    if left := list(tasks):
        await asyncio.wait(left, timeout=seconds)


def _quieten() -> None:
    """DBOS greets, advises and points to its cloud at INFO, on a handler of its own unless there is one; it warns of
    every workflow that we stop. What it has to say of the database goes where our log goes."""
    logger = logging.getLogger("dbos")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    if _is_news not in logger.filters:
        logger.addFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    return record.levelno > logging.WARNING or not record.getMessage().startswith("Asyncio task cancelled")


def _config(path: Path, engine: Engine) -> "DBOSConfig":
    return {
        "name": APPLICATION,
        "system_database_url": _url(path).render_as_string(hide_password=False),
        "system_database_engine": engine,
        "application_version": VERSION,
        "executor_id": EXECUTOR,
        "serializer": _serializer(),
        # A thread of DBOS sleeps so long at a time, and `close` waits for it to wake.
        "notification_listener_polling_interval_sec": 0.25,
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


def _system_engine(path: Path) -> Engine:
    engine = create_engine(_url(path), poolclass=QueuePool, pool_size=CONNECTIONS, max_overflow=0)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        # As DBOS does with an engine that it makes itself; WAL saves it half of its time.
        connection.isolation_level = "IMMEDIATE"
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        # From Python 3.12 on DBOS takes for granted that SQLite knows `unixepoch('subsec')`; 3.42 was the first.
        if sqlite3.sqlite_version_info < (3, 42):
            connection.create_function("unixepoch", 1, lambda _: time.time())

    return engine


def _make_private(path: Path) -> None:
    """Steps hold what people said: nobody else on the machine reads them."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StorageReadOnly(str(error), path=str(path)) from error
