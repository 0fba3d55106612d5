"""The commands of the page "two machines" are run as they stand, on a PostgreSQL and on ports of this machine."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from reflexio.server.process import free_port
from tests.builders import eventually
from tests.docs.markdown import page
from tests.postgres import BINARIES, running_postgres

PAGE = page("docs/how-to/two-machines.md")
STAYS = re.compile(r"reflexio (serve|worker)\b")
NOT_HERE = ("pip ", "docker ", "kubectl ", "systemctl ")


def lines() -> list[str]:
    blocks = (block for block in PAGE.blocks() if block.language == "sh")
    return [line for block in blocks for line in block.code if line.strip() and not line.startswith(NOT_HERE)]


class Machines:
    """Runs lines of the page: those that stay once on each machine, the others once."""

    def __init__(self, socket: str, folder: Path) -> None:
        path = f"{BINARIES}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = {"PATH": path, "PGHOST": socket, "HOME": str(folder)}
        self.ports = {name: (free_port(), free_port()) for name in ("one", "two")}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._socket, self._folder = socket, folder

    def run(self, line: str) -> str:
        """Runs a line and returns what it printed. What it exports holds for the next ones."""
        if match := STAYS.search(line):
            for name in self.ports:
                self.processes[f"{match[1]} {name}"] = self._start(line, *self.ports[name])
            return ""
        script = f"{self._here(line)}\nprintf '\\0'\nenv -0"
        done = subprocess.run(
            ["bash", "-ec", script],
            env=self.environment,
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        printed, _, variables = done.stdout.partition("\0")
        exported = dict(entry.split("=", 1) for entry in variables.split("\0") if "=" in entry)
        self.environment |= {name: value for name, value in exported.items() if name.startswith(("REFLEXIO_", "PG"))}
        return printed.strip()

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.ports[name][0]}"

    def worker_metrics(self, name: str) -> str:
        try:
            return httpx.get(f"http://127.0.0.1:{self.ports[name][1]}/metrics").text
        except httpx.TransportError:
            return ""

    def kill(self, what: str) -> None:
        process = self.processes.pop(what)
        process.kill()
        process.wait(10)

    def stop(self) -> None:
        for process in self.processes.values():
            process.terminate()
        assert {process.wait(30) for process in self.processes.values()} <= {0, -signal.SIGTERM}

    def _start(self, line: str, port: int, worker_port: int) -> "subprocess.Popen[bytes]":
        line = (
            line.replace("--host 0.0.0.0", "--host 127.0.0.1")
            .replace("8081", str(port))
            .replace("8082", str(worker_port))
        )
        return subprocess.Popen(["bash", "-c", f"exec env {line}"], env=self.environment, cwd=self._folder)

    def _here(self, line: str) -> str:
        line = line.replace("@db.example/reflexio", f"@/reflexio?host={self._socket}")
        return re.sub(r"http://(one|two)\.example:8081", lambda match: self.url(match[1]), line)


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    with running_postgres() as dsn:
        machines = Machines(str(conninfo_to_dict(dsn)["host"]), tmp_path)
        try:
            yield machines
        finally:
            machines.stop()


@pytest.mark.slow
def test_the_page_can_be_followed_command_by_command_and_both_machines_may_die(machines: Machines) -> None:
    waiting = lines()
    while waiting:
        line = waiting.pop(0)
        if line.startswith("reflexio publish"):
            ready = [f"{machines.url(name)}/health/ready" for name in machines.ports]
            eventually(lambda ready=ready: all(map(answers, ready)), seconds=60)  # type: ignore[misc]
        printed = machines.run(line)
        if line.startswith("reflexio keys create"):
            machines.environment["REFLEXIO_API_KEY"] = printed
        if line.startswith("reflexio context"):
            assert "allergic to peanuts" in printed
    assert count_turns(machines, "reflexio") == count_turns(machines, "reflexio_restored") == 1
    check_that_one_machine_carries_on(machines)


def answers(url: str) -> bool:
    try:
        return httpx.get(url).is_success
    except httpx.TransportError:
        return False


def count_turns(machines: Machines, database: str) -> int:
    with psycopg.connect(host=machines.environment["PGHOST"], user="postgres", dbname=database) as connection:
        row = connection.execute("SELECT count(*) FROM interactions").fetchone()
        assert row
        return int(row[0])


def check_that_one_machine_carries_on(machines: Machines) -> None:
    """The machine with the leader loses both of its processes at once."""
    leads = "reflexio_process_leads 1"
    eventually(lambda: any(leads in machines.worker_metrics(name) for name in machines.ports), seconds=30)
    gone = "one" if leads in machines.worker_metrics("one") else "two"
    left = "two" if gone == "one" else "one"
    machines.kill(f"worker {gone}")
    machines.kill(f"serve {gone}")
    said = machines.run(
        f'reflexio publish --url http://{left}.example:8081 --user bob --finish --wait "User: I live in Oslo."'
    )
    assert said
    eventually(lambda: leads in machines.worker_metrics(left), seconds=30)
    printed = machines.run(f'reflexio context --url http://{left}.example:8081 --user bob "Where do I live?"')
    assert "Oslo" in printed
