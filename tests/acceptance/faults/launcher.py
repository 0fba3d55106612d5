"""Forks servers that break at a chosen moment. Run by `faulty.py`, which sends one command in each line.

Everything is imported once, so that a server starts in a fraction of the time. The faults are put in from here; the
product knows nothing of them.
"""

import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, event

from reflexio.app import Reflexio
from reflexio.engine.steps import StepRunner
from reflexio.ports.work import Json
from reflexio.server.run import serve
from reflexio.settings import Settings
from reflexio.storage import sqlite


class Boundaries:
    """Numbers the commits and steps of a server. It dies at one of them as if the power had gone."""

    def __init__(self, log: Path, fatal: int) -> None:
        self._log = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        self._fatal = fatal
        self._count = 0

    def reach(self, name: str) -> None:
        self._count += 1
        os.write(self._log, f"{self._count} {name}\n".encode())
        if self._count == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def install(self) -> None:
        answer, create = sqlite._answer, sqlite._create_engine
        run = StepRunner._run

        def create_watched(path: Path, begin: str, **options: Any) -> Any:
            engine = create(path, begin, **options)
            if begin == "BEGIN IMMEDIATE":
                event.listen(engine, "commit", self._before_commit)
            return engine

        def answer_watched(results: Any) -> None:
            self.reach("after a commit")
            answer(results)

        async def run_watched(steps: StepRunner, name: str, act: Callable[[], Any]) -> Json:
            self.reach(f"before the step {name}")

            async def act_watched() -> Json:
                result: Json = await act()
                self.reach(f"after the step {name}")
                return result

            return await run(steps, name, act_watched)

        sqlite._answer = answer_watched
        sqlite._create_engine = create_watched
        StepRunner._run = run_watched  # type: ignore[method-assign,assignment]

    def _before_commit(self, _: Connection) -> None:
        self.reach("before a commit")


def shift_clock(seconds: float) -> None:
    now = time.time
    time.time = lambda: now() + seconds


def limit_files(megabytes: float) -> None:
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (round(megabytes * 1_048_576), resource.RLIM_INFINITY))


def watch_connections(act: Callable[[Any], None]) -> None:
    """Calls `act` with every connection to the database."""
    create = sqlite._create_engine

    def create_watched(path: Path, begin: str, **options: Any) -> Any:
        engine = create(path, begin, **options)
        event.listen(engine, "connect", lambda connection, _: act(connection))
        return engine

    sqlite._create_engine = create_watched


def keep_deleted() -> None:
    """Makes every connection one of a SQLite that does not overwrite what it deletes, unless it is told to."""
    connect = sqlite3.connect

    def connect_plainly(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.execute("PRAGMA secure_delete=OFF").fetchall()
        return connection

    sqlite3.connect = sqlite3.dbapi2.connect = connect_plainly  # type: ignore[assignment]


def switch_read_only_on_signal() -> None:
    """SIGUSR1 makes SQLite refuse to write, as on a read-only file system; once more, and it writes again."""
    connections, modes, mode = list[Any](), {"ON": "OFF", "OFF": "ON"}, "OFF"

    def switch(*_: Any) -> None:
        nonlocal mode
        mode = modes[mode]
        for connection in connections:
            with suppress(sqlite3.ProgrammingError):  # it is closed
                connection.execute(f"PRAGMA query_only={mode}")

    watch_connections(connections.append)
    signal.signal(signal.SIGUSR1, switch)


def work_beside_callers() -> None:
    """The server does its worker's work too: one process has all commits and steps, and dies as a whole."""
    start_serving = Reflexio.start_serving

    def start_both(parts: Reflexio) -> None:
        start_serving(parts)
        parts._tasks.start(parts.work_until_cancelled())

    Reflexio.start_serving = start_both  # type: ignore[method-assign,assignment]


def run_server(command: dict[str, Any]) -> None:
    os.environ.update(command["environment"])
    if "boundary" in command:
        Boundaries(Path(command["log"]), command["boundary"]).install()
    if "clock" in command:
        shift_clock(command["clock"])
    if "busy_milliseconds" in command:
        waiting = f"PRAGMA busy_timeout={command['busy_milliseconds']}"
        watch_connections(lambda connection: connection.execute(waiting))
    if command.get("keeps_deleted"):
        keep_deleted()
    if command.get("read_only_switch"):
        switch_read_only_on_signal()
    if "file_megabytes" in command:
        limit_files(command["file_megabytes"])
    work_beside_callers()
    serve(Settings.read(), with_worker=False)


def start(command: dict[str, Any]) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        run_server(command)
        code = 0
    except SystemExit as error:
        code = int(error.code or 0)
    finally:
        os._exit(code)


def end(pid: int, sign: int) -> int:
    """Sends a signal, if not 0, and returns how the server ended: its exit code, or minus the signal."""
    if sign:
        os.kill(pid, sign)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main() -> None:
    create_modules()
    for line in sys.stdin:
        command = json.loads(line)
        act = {"start": partial(start, command), "end": partial(end, command.get("pid", 0), command.get("signal", 0))}
        print(act[command["do"]](), flush=True)


def create_modules() -> None:
    """What a server would import when it needs it."""
    import reflexio.learners.llm.learner
    import reflexio.learners.local.learner
    import reflexio.providers.chat.resolve
    import reflexio.providers.embedding.minilm
    import reflexio.server.app  # noqa: F401


if __name__ == "__main__":
    main()
