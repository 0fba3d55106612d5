"""A server in a process of its own, on a free port: for the demo, for benchmarks and for tests."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from reflexio.errors import ReflexioError

TIMEOUT_SECONDS = 30.0


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class ServerProcess:
    """`reflexio serve` on a folder. It gets only the REFLEXIO_* variables in `environment`, and can be restarted."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None, options: Sequence[str] = ()) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [sys.executable, "-m", "reflexio", "serve", "--port", str(self.port), "--data", str(folder)]
        self._command += options
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("REFLEXIO_")}
        self._environment = {**inherited, "REFLEXIO_LOG_LEVEL": "warning", **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the server and waits until it is ready."""
        # In a group of its own, so that `kill` ends its worker as well.
        process = subprocess.Popen(self._command, env=self._environment, start_new_session=True)  # noqa: S603
        self._process = process
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            try:
                if httpx.get(f"{self.url}/health/ready", trust_env=False).is_success:  # a proxy cannot reach it
                    return
            except httpx.TransportError:
                time.sleep(0.05)
        self.kill()
        raise ReflexioError("The server did not start.")

    def stop(self) -> int:
        """Stops the server, waits for its end, and returns its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(TIMEOUT_SECONDS)

    def kill(self) -> None:
        """Ends the server and its worker at once, as a power cut would."""
        assert self._process is not None
        with suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        self._process.wait(TIMEOUT_SECONDS)


@contextmanager
def running_server(folder: Path, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """The URL of a server that runs inside the `with` block."""
    server = ServerProcess(folder, environment)
    server.start()
    try:
        yield server.url
    finally:
        server.stop()
