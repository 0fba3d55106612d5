"""`reflexio demo --open`: fills a folder with the demo and serves it until Ctrl-C, with a browser if there is one."""

import asyncio
import socket
import tempfile
import threading
import time
import webbrowser
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import httpx
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from reflexio.app import DATABASE
from reflexio.cli.console import Terminal
from reflexio.cli.demo_shop.fill import fill
from reflexio.server.process import free_port
from reflexio.server.run import serve
from reflexio.settings import Settings

OPENED_WITHIN = 30.0  # seconds


def serve_demo(data: Path | None, port: int) -> None:
    """Serves the demo from a temporary folder, or from `data`, which is filled once and kept."""
    console = Terminal(highlight=False)
    with ExitStack() as stack:
        folder = data or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reflexio-demo-")))
        if (folder / DATABASE).exists():
            console.print(f"{folder} has a database already: it is served as it is.")
        else:
            _fill(folder, console)
        settings = Settings(data=folder, port=port or _usual_port(), log_level="warning")
        address = f"http://127.0.0.1:{settings.port}/"
        console.print(f"\nThe demo runs at [bold]{address}[/bold]. Ctrl-C stops it.")
        console.print("Everything in it is made up, and no model was asked.")
        threading.Thread(target=_open_browser, args=(address,), daemon=True).start()
        serve(settings)


def _fill(folder: Path, console: Terminal) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("Four weeks of conversations are published and learned", total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        folder.mkdir(parents=True, exist_ok=True)
        asyncio.run(fill(folder, show, end=datetime.now(UTC)))


def _usual_port() -> int:
    """The port of `reflexio serve`, or a free one when it is taken."""
    usual = Settings().port
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", usual))
        except OSError:
            return free_port()
    return usual


def _open_browser(address: str) -> None:
    deadline = time.monotonic() + OPENED_WITHIN
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{address}health/ready", trust_env=False).is_success:
                webbrowser.open(address)
                return
        except httpx.TransportError:
            time.sleep(0.1)
