"""The demo: a real server on a real port, four customers, and what was learned from their conversations."""

import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from reflexio.cli.conversations import CONVERSATIONS
from reflexio.client.sync import ReflexioClient
from reflexio.server.process import running_server

VERSION = "shop-1"


def demo() -> None:
    console = Console()
    with tempfile.TemporaryDirectory(prefix="reflexio-demo-") as folder:
        console.print("[bold]Reflexio[/bold] starts on an embedded database, without a model and without a key …")
        with running_server(Path(folder)) as url, ReflexioClient(url_endpoint=url, api_key="none") as client:
            _publish(client, console)
            _show_turns(client, console)
            _show_learnings(client, console)
            _show_gathered(client, console)
            console.print("\n[bold]make serve[/bold] starts a server to keep; its API can be tried at /docs.")
            console.print(
                "A dashboard is not there yet: until it is, [bold]reflexio review[/bold] is the place to review."
            )
            console.print("The demo is over; its server and its folder are gone.")


def _publish(client: ReflexioClient, console: Console) -> None:
    turns = sum(len(said) for _, _, said in CONVERSATIONS)
    with Progress(console=console) as progress:
        bar = progress.add_task("Publishing conversations, and learning from them", total=turns)
        for user, session, said in CONVERSATIONS:
            client.publish_interaction(
                user, said, session_id=session, source="demo", agent_version=VERSION, wait_for_response=True
            )
            progress.advance(bar, len(said))


def _show_turns(client: ReflexioClient, console: Console) -> None:
    table = Table(title="Stored", title_justify="left")
    for column, style in (("user", "cyan"), ("session", "magenta"), ("turns", "green"), ("the last word", "")):
        table.add_column(column, style=style)
    for session in client.get_requests().sessions:
        for stored in session.requests:
            last = stored.interactions[-1]
            words = last.expert_content or last.content
            table.add_row(stored.request.user_id, session.session_id, str(len(stored.interactions)), words)
    console.print(table)


def _show_learnings(client: ReflexioClient, console: Console) -> None:
    table = Table(title="Learned, by rules and without a model", title_justify="left", show_lines=True)
    for column, style in (("user", "cyan"), ("kind", "magenta"), ("what", "green"), ("the words it comes from", "")):
        table.add_column(column, style=style)
    for user in dict.fromkeys(user for user, _, _ in CONVERSATIONS):
        for fact in client.get_profiles(user).user_profiles:
            table.add_row(user, "profile", fact.content, fact.source_span)
        for rule in client.get_user_playbooks(user_id=user).user_playbooks:
            table.add_row(user, "playbook", f"{rule.trigger}: {rule.content}", rule.source_span)
    console.print(table)


def _show_gathered(client: ReflexioClient, console: Console) -> None:
    client.run_playbook_aggregation(agent_version=VERSION, wait_for_response=True)
    table = Table(title="Gathered from several users, and waiting for a person", title_justify="left", show_lines=True)
    for column, style in (("users", "cyan"), ("what", "green"), ("who taught it", "")):
        table.add_column(column, style=style)
    for item in client.get_review_queue().items:
        rule, taught = item.agent_playbook, [each.user_id or "" for each in item.evidence]
        table.add_row(str(item.support), f"{rule.trigger}: {rule.content}", ", ".join(taught))
    console.print(table)
    console.print("[bold]reflexio review[/bold] approves or rejects it; until then it reaches no prompt.")
