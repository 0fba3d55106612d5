"""Servers that break, from the side of the test that starts them."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx

from reflexio.doctor import Finding, examine
from reflexio.errors import ServerUnreachable
from reflexio.server.process import free_port
from reflexio.settings import Settings

T = TypeVar("T")
ROOT = Path(__file__).parents[3]
PATIENCE = 30.0


class Launcher:
    """The process that forks servers."""

    def __init__(self) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("REFLEXIO_")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.acceptance.faults.launcher"],
            cwd=ROOT,
            env=inherited,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, **command: Any) -> int:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class FaultyServer:
    """One folder and one port. Each start may name faults: see `launcher.py`."""

    def __init__(self, launcher: Launcher, folder: Path, environment: Mapping[str, str]) -> None:
        self._launcher = launcher
        self.folder = folder
        self.log = folder.parent / f"{folder.name}-boundaries.log"
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._environment = {
            "REFLEXIO_DATA": str(folder),
            "REFLEXIO_PORT": str(self._port),
            "REFLEXIO_LOG_LEVEL": "critical",
            "REFLEXIO_PRIVATE_ADDRESSES": "1",
            **environment,
        }
        self._pid = 0

    def start(self, **faults: Any) -> None:
        """Starts the server and waits until it answers, or has died of a fault already."""
        self._pid = self._launcher.tell(do="start", environment=self._environment, log=str(self.log), **faults)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                httpx.get(f"{self.url}/health/live", trust_env=False, timeout=PATIENCE)
                return
            except httpx.TransportError:
                if self.is_dead:
                    return
                time.sleep(0.02)
        raise AssertionError("the server did not start")

    @property
    def is_dead(self) -> bool:
        # The launcher collects dead servers only when asked: until then they are zombies.
        stat = Path(f"/proc/{self._pid}/stat")
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"

    def end(self, sign: signal.Signals | int = signal.SIGKILL) -> int:
        """Ends the server, or collects a dead one with 0. Returns its exit code, or minus the signal."""
        pid, self._pid = self._pid, 0
        return self._launcher.tell(do="end", pid=pid, signal=int(sign)) if pid else 0

    def switch_read_only(self) -> None:
        os.kill(self._pid, signal.SIGUSR1)

    def persist(self, call: Callable[[], T]) -> T:
        """The answer to a call that is repeated as long as the server dies of it."""
        while True:
            try:
                return call()
            except ServerUnreachable:
                self.end(0)
                self.start()

    def boundaries(self) -> list[str]:
        return self.log.read_text().splitlines()


@contextmanager
def launcher() -> Iterator[Launcher]:
    process = Launcher()
    try:
        yield process
    finally:
        process.close()


def broken_findings(folder: Path) -> list[Finding]:
    """What `reflexio doctor` would complain about, beside what the tests do: a small disk, and a clock that jumps."""

    async def collect() -> list[Finding]:
        return [
            finding
            async for finding in examine(Settings(data=folder))
            if not finding.is_ok and finding.part not in ("disk", "clock")
        ]

    return asyncio.run(collect())
