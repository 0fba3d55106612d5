"""The demo: a real server on a real port, four customers, and what remains of their conversations."""

import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from reflexio.cli.conversations import CONVERSATIONS
from reflexio.client.sync import ReflexioClient
from reflexio.server.process import running_server


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
