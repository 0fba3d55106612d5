"""The worker: learning, indexing, embedding, aggregation, optimisation and tidying, in a process of its own.

`reflexio serve` starts one beside the server and starts it again when it ends; `reflexio worker` runs one alone.
"""

import asyncio
import logging
import os
import signal
import sys
from contextlib import suppress

from reflexio.app import build
from reflexio.server.log import install as install_log
from reflexio.settings import Settings

log = logging.getLogger("reflexio.worker")

NICENESS = 5
"""Callers of the server beside it go first where processors are scarce."""
STOP_SECONDS = 5.0
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds until an ended worker is started again."""


def run_worker(settings: Settings, *, beside_server: bool = False) -> None:
    """Works until Ctrl-C or SIGTERM; beside a server, also until that process ends."""
    install_log()
    if beside_server and hasattr(os, "nice"):
        os.nice(NICENESS)
    asyncio.run(_work(settings, beside_server=beside_server))


async def _work(settings: Settings, *, beside_server: bool) -> None:
    stopping, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows ends the process instead
            loop.add_signal_handler(number, stopping.set)
    ended: list[asyncio.Task[object]] = [asyncio.create_task(stopping.wait())]
    if beside_server:
        ended.append(asyncio.create_task(_server_ended()))
    parts = await build(settings)
    work = asyncio.create_task(parts.work_until_cancelled())
    try:
        await asyncio.wait({work, *ended}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
    finally:
        for task in (work, *ended):
            task.cancel()
        await asyncio.gather(work, *ended, return_exceptions=True)
        await parts.close()
    # The thread that reads from the server cannot be cancelled.
    sys.stdout.flush()
    os._exit(0)


async def _server_ended() -> None:
    """Returns when the server has closed its end of the pipe, as it does when it is killed."""
    await asyncio.to_thread(sys.stdin.buffer.read)


class WorkerProcess:
    """A worker beside this server."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._process: asyncio.subprocess.Process | None = None
        self._watch: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._watch = asyncio.create_task(self._keep_running())

    async def stop(self) -> None:
        if self._watch:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        process = self._process
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()

    async def _keep_running(self) -> None:
        pause = FIRST_PAUSE
        while True:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "reflexio",
                "worker",
                "--beside-server",
                stdin=asyncio.subprocess.PIPE,
                env=self._environment(),
            )
            started = asyncio.get_running_loop().time()
            code = await self._process.wait()
            lasted = asyncio.get_running_loop().time() - started
            pause = FIRST_PAUSE if lasted > LONGEST_PAUSE else min(2 * pause, LONGEST_PAUSE)
            log.warning("the worker ended with code %s; another one starts in %g s", code, pause)
            await asyncio.sleep(pause)

    def _environment(self) -> dict[str, str]:
        """The variables of this process, and what was set by options."""
        settings = self._settings
        named = {"DATA": str(settings.data), "HOST": settings.host, "DATABASE": settings.database}
        return {**os.environ, **{f"REFLEXIO_{name}": value for name, value in named.items()}}
