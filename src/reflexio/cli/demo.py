"""The demo: a real server on a real port, four customers, and what remains of their conversations."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from reflexio.cli.conversations import CONVERSATIONS
from reflexio.client.sync import ReflexioClient
from reflexio.errors import ReflexioError

PATIENCE = 30.0


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def running_server(folder: Path) -> Iterator[str]:
    """A server of its own process on a free port, stopped at the end."""
    url = f"http://127.0.0.1:{free_port()}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("REFLEXIO_")}
    command = [sys.executable, "-m", "reflexio", "serve", "--port", url.rpartition(":")[2], "--data", str(folder)]
    process = subprocess.Popen(command, env={**environment, "REFLEXIO_LOG_LEVEL": "warning"})  # noqa: S603
    try:
        _wait_until_healthy(url, process)
        yield url
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _wait_until_healthy(url: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"{url}/health/ready").is_success:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise ReflexioError("The demo's server did not start.")


def demo() -> None:
    console = Console()
    with tempfile.TemporaryDirectory(prefix="reflexio-demo-") as folder:
        console.print("[bold]Reflexio[/bold] starts on an embedded database, without a model and without a key …")
        with running_server(Path(folder)) as url, ReflexioClient(url_endpoint=url, api_key="none") as client:
            _publish(client, console)
            _show(client, console)
            console.print("\n[bold]make serve[/bold] starts a server to keep; its API can be tried at /docs.")
            console.print("The demo is over; its server and its folder are gone.")


def _publish(client: ReflexioClient, console: Console) -> None:
    turns = sum(len(said) for _, _, said in CONVERSATIONS)
    with Progress(console=console) as progress:
        bar = progress.add_task("Publishing conversations", total=turns)
        for user, session, said in CONVERSATIONS:
            client.publish_interaction(
                user, said, session_id=session, source="demo", agent_version="shop-1", session_finished=True
            )
            progress.advance(bar, len(said))


def _show(client: ReflexioClient, console: Console) -> None:
    table = Table(title="Stored", title_justify="left")
    for column, style in (("user", "cyan"), ("session", "magenta"), ("turns", "green"), ("the last word", "")):
        table.add_column(column, style=style)
    for session in client.get_requests().sessions:
        for stored in session.requests:
            last = stored.interactions[-1]
            words = last.expert_content or last.content
            table.add_row(stored.request.user_id, session.session_id, str(len(stored.interactions)), words)
    console.print(table)
