"""`reflexio demo`: a real server, the conversations of four customers of a small shop, and what was learned."""

import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from reflexio.client.sync import ReflexioClient
from reflexio.server.process import running_server

AGENT_VERSION = "shop-1"
Conversation = tuple[str, str, list[dict[str, Any]]]

CONVERSATIONS: list[Conversation] = [
    (
        "amira",
        "order-1841",
        [
            {"role": "User", "content": "My parcel is marked delivered, but there is nothing here."},
            {"role": "Agent", "content": "I am sorry. I have started a refund for you."},
            {"role": "User", "content": "No, always check with the neighbours first, then look at refunds."},
            {"role": "Agent", "content": "Understood. The driver's note says it is with number 12, next door."},
            {"role": "User", "content": "Found it. By the way, I prefer to be written to by e-mail, not by phone."},
        ],
    ),
    (
        "jonas",
        "order-1857",
        [
            {"role": "User", "content": "The tracking says delivered, I have received nothing."},
            {"role": "Agent", "content": "Shall I send a new one?"},
            {"role": "User", "content": "Don't send anything before you have asked my neighbours, please."},
            {"role": "Agent", "content": "They have it: the lady on the second floor."},
        ],
    ),
    (
        "mei",
        "lamp-returns",
        [
            {"role": "User", "content": "How do I return a lamp that I bought in March?"},
            {
                "role": "Agent",
                "content": "You can return it within 14 days.",
                "expert_content": "Lamps can be returned for 100 days. Print the label under Orders > Returns; the "
                "refund comes two days after the parcel has been scanned.",
            },
        ],
    ),
    (
        "pavel",
        "invoice-77",
        [
            {"role": "User", "content": "I need invoice 77 with our VAT number on it."},
            {
                "role": "Agent",
                "content": "Here it is, with your VAT number.",
                "tools_used": [
                    {"tool_name": "get_invoice", "tool_data": {"id": "77"}, "status": "error: id must be a number"},
                    {"tool_name": "get_invoice", "tool_data": {"id": 77}, "status": "ok"},
                ],
            },
            {"role": "User", "content": "Thanks. I am vegetarian, by the way: no leather samples in the parcel."},
        ],
    ),
]


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
    total = sum(len(turns) for _, _, turns in CONVERSATIONS)
    with Progress(console=console) as progress:
        bar = progress.add_task("Publishing conversations and learning from them", total=total)
        for user, session, turns in CONVERSATIONS:
            client.publish_interaction(
                user, turns, session_id=session, source="demo", agent_version=AGENT_VERSION, wait_for_response=True
            )
            progress.advance(bar, len(turns))


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
    for user, _, _ in CONVERSATIONS:
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
