"""`reflexio demo`: a real server, the conversations of four customers of a small shop, and what was learned."""

import tempfile
import tomllib
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from reflexio.client.sync import ReflexioClient
from reflexio.server.process import running_server

AGENT_VERSION = "shop-1"
_DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
CONVERSATIONS: list[dict[str, Any]] = _DATA["conversations"]


def demo() -> None:
    """Runs the demo."""
    console = Console()
    with tempfile.TemporaryDirectory(prefix="reflexio-demo-") as folder:
        console.print("[bold]Reflexio[/bold] starts on an embedded database, without a model and without a key …")
        with running_server(Path(folder)) as url, ReflexioClient(url_endpoint=url, api_key="none") as client:
            _publish(client, console)
            _show_turns(client, console)
            _show_learnings(client, console)
            _show_aggregated(client, console)
            console.print("\n[bold]make serve[/bold] starts a server that keeps running; try its API at /docs.")
            console.print("There is no dashboard yet: review playbooks with [bold]reflexio review[/bold].")
            console.print("The demo is over. Its server is stopped and its folder is deleted.")


def _publish(client: ReflexioClient, console: Console) -> None:
    total = sum(len(conversation["turns"]) for conversation in CONVERSATIONS)
    with Progress(console=console) as progress:
        bar = progress.add_task("Publishing conversations and learning from them", total=total)
        for conversation in CONVERSATIONS:
            client.publish_interaction(
                conversation["user"],
                conversation["turns"],
                session_id=conversation["session"],
                source="demo",
                agent_version=AGENT_VERSION,
                wait_for_response=True,
            )
            progress.advance(bar, len(conversation["turns"]))


def _table(title: str, **styles: str) -> Table:
    table = Table(title=title, title_justify="left", show_lines=True)
    for column, style in styles.items():
        table.add_column(column.replace("_", " "), style=style)
    return table


def _show_turns(client: ReflexioClient, console: Console) -> None:
    table = _table("Stored", user="cyan", session="magenta", turns="green", last_turn="")
    for session in client.get_requests().sessions:
        for publish in session.requests:
            last = publish.interactions[-1]
            words = last.expert_content or last.content
            table.add_row(publish.request.user_id, session.session_id, str(len(publish.interactions)), words)
    console.print(table)


def _show_learnings(client: ReflexioClient, console: Console) -> None:
    table = _table("Learned by rules, without a model", user="cyan", kind="magenta", learning="green", quote="")
    for user in (conversation["user"] for conversation in CONVERSATIONS):
        for profile in client.get_profiles(user).user_profiles:
            table.add_row(user, "profile", profile.content, profile.source_span)
        for playbook in client.get_user_playbooks(user_id=user).user_playbooks:
            table.add_row(user, "playbook", f"{playbook.trigger}: {playbook.content}", playbook.source_span)
    console.print(table)


def _show_aggregated(client: ReflexioClient, console: Console) -> None:
    client.run_playbook_aggregation(agent_version=AGENT_VERSION, wait_for_response=True)
    table = _table("Summarised from several users, waiting for review", users="cyan", playbook="green", learned_from="")
    for item in client.get_review_queue().items:
        playbook, users = item.agent_playbook, [quote.user_id or "" for quote in item.evidence]
        table.add_row(str(item.support), f"{playbook.trigger}: {playbook.content}", ", ".join(users))
    console.print(table)
    console.print("Approve or reject it with [bold]reflexio review[/bold]. Until then no prompt contains it.")
