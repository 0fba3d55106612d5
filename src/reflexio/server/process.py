"""A server in a process of its own on a free port: for the demo, for measurements and for tests."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from reflexio.errors import ReflexioError

PATIENCE = 30.0


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class ServerProcess:
    """`reflexio serve` on a folder. It sees no REFLEXIO_* variables but those given, and can be started again."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [sys.executable, "-m", "reflexio", "serve", "--port", str(self.port), "--data", str(folder)]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("REFLEXIO_")}
        self._environment = {**inherited, "REFLEXIO_LOG_LEVEL": "warning", **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns once the server answers."""
        process = subprocess.Popen(self._command, env=self._environment)  # noqa: S603
        self._process = process
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and process.poll() is None:
            try:
                if httpx.get(f"{self.url}/health/ready", trust_env=False).is_success:  # no proxy leads here
                    return
            except httpx.TransportError:
                time.sleep(0.05)
        self.kill()
        raise ReflexioError("The server did not start.")

    def stop(self) -> int:
        """Asks the server to finish, waits for it, and returns its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(PATIENCE)

    def kill(self) -> None:
        """Ends the server at once, as a power cut would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(PATIENCE)


@contextmanager
def running_server(folder: Path, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """The URL of a server that is stopped at the end."""
    server = ServerProcess(folder, environment)
    server.start()
    try:
        yield server.url
    finally:
        server.stop()
