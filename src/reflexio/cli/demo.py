"""`reflexio demo`: customers of a small shop correct its agent, and what was learned is in the next prompts."""

import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from reflexio.cli.console import Terminal
from reflexio.client.sync import ReflexioClient
from reflexio.models.review import ReviewItem
from reflexio.server.process import running_server

AGENT_VERSION = "shop-1"
_DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
CONVERSATIONS: list[dict[str, Any]] = _DATA["conversations"]
INSTRUCTIONS: str = _DATA["instructions"]
NEXT: dict[str, str] = _DATA["next_customer"]
RETURNING: dict[str, str] = _DATA["returning_customer"]
WIDEST = 100
LONGEST_WAIT = 10.0  # seconds


def demo() -> None:
    """Runs the demo."""
    console = Terminal(highlight=False)
    console.width = min(console.width, WIDEST)
    console.print("[bold]Reflexio[/bold] starts on an embedded database, without a model and without a key …")
    with (
        tempfile.TemporaryDirectory(prefix="reflexio-demo-") as folder,
        running_server(Path(folder)) as url,
        ReflexioClient(url_endpoint=url, api_key="none") as client,
    ):
        _show_loop(client, console)
    console.print("\nThe demo is over: its server is stopped and its folder is deleted.")
    console.print("[bold]make serve[/bold] starts a server that keeps running: see docs/quickstart.md.")
    console.print("Review there at [bold]/review[/bold], or in the terminal: [bold]reflexio review[/bold].")


def _show_loop(client: ReflexioClient, console: Terminal) -> None:
    _publish(client, console)
    _show_learnings(client, console)
    items = _propose(client, console)
    before = _prompt(client, **NEXT)
    _approve(client, console, items)
    _heading(console, f"5. Another customer, {NEXT['user']}, asks in other words. What the agent is sent:")
    _show_prompt(console, "before the approval", before)
    _show_prompt(console, "after the approval", _prompt(client, **NEXT))
    _heading(console, f"6. {RETURNING['user']} is back with another matter. What the agent is sent:")
    _show_prompt(console, "with what always holds for this user", _prompt(client, **RETURNING))


def _heading(console: Terminal, text: str) -> None:
    console.print(f"\n[bold cyan]{text}[/bold cyan]")


def _publish(client: ReflexioClient, console: Terminal) -> None:
    _heading(console, "1. Four customers write to the agent of a lamp shop")
    for number, conversation in enumerate(CONVERSATIONS):
        client.publish_interaction(
            conversation["user"],
            conversation["turns"],
            session_id=conversation["session"],
            source="demo",
            agent_version=AGENT_VERSION,
            wait_for_response=True,
        )
        console.print(Padding(_turns(conversation), (min(number, 1), 0, 0, 2)))


def _turns(conversation: dict[str, Any]) -> Table:
    table = Table.grid(padding=(0, 2))
    for turn in conversation["turns"]:
        is_user = turn["role"] == "User"
        table.add_row(Text(conversation["user"] if is_user else "agent", "magenta" if is_user else ""), turn["content"])
        for tool in turn.get("tools_used", ()):
            table.add_row("", Text(f"{tool['tool_name']} {tool['tool_data']}: {tool['status']}", "dim"))
        if expert := turn.get("expert_content"):
            table.add_row(Text("expert", "magenta"), expert)
    return table


def _show_learnings(client: ReflexioClient, console: Terminal) -> None:
    _heading(console, "2. What Reflexio learned, by rules, without a model")
    table = Table(show_lines=True)
    for column, style in (("user", "magenta"), ("learned", "green"), ("from the words", "")):
        table.add_column(column, style=style)
    for user in (conversation["user"] for conversation in CONVERSATIONS):
        for profile in client.get_profiles(user).user_profiles:
            table.add_row(user, escape(profile.content), escape(profile.source_span or ""))
        for playbook in client.get_user_playbooks(user_id=user).user_playbooks:
            table.add_row(user, escape(_rule(playbook.trigger, playbook.content)), escape(playbook.source_span or ""))
    console.print(table)


def _rule(trigger: str | None, content: str) -> str:
    return f"{trigger}: {content}" if trigger else content


def _propose(client: ReflexioClient, console: Terminal) -> list[ReviewItem]:
    _heading(console, "3. What several customers taught becomes one rule, which waits for a person")
    client.run_playbook_aggregation(agent_version=AGENT_VERSION, wait_for_response=True)
    items = client.get_review_queue(agent_version=AGENT_VERSION).items
    for item in items:
        playbook, users = item.agent_playbook, sorted({quote.user_id or "" for quote in item.evidence})
        title = f"pending, taught by {' and '.join(users)}"
        console.print(Panel(Text(_rule(playbook.trigger, playbook.content), "green"), title=title, title_align="left"))
    return items


def _approve(client: ReflexioClient, console: Terminal, items: list[ReviewItem]) -> None:
    _heading(console, "4. The demo plays the reviewer and approves it")
    numbers = [item.agent_playbook.agent_playbook_id for item in items]
    client.review_agent_playbooks(numbers, playbook_status="approved", reviewer="demo", reason="as we do it")
    console.print("In your organisation a person decides. Until then the rule is in no prompt.")
    _wait_for_vectors(client)


def _wait_for_vectors(client: ReflexioClient) -> None:
    """A new rule gets its vector in the background, and is found by its meaning from then on."""
    deadline = time.monotonic() + LONGEST_WAIT
    query = NEXT["asks"]
    while time.monotonic() < deadline:
        found = client.search_agent_playbooks(query, explain=True).explanations or []
        if found and all(explanation.vector_score is not None for explanation in found):
            return
        time.sleep(0.1)


def _prompt(client: ReflexioClient, user: str, asks: str) -> list[str]:
    """What the agent is sent when a customer writes: its instructions, the context if there is one, and the message."""
    context = client.get_context(asks, user_id=user, agent_version=AGENT_VERSION).context
    return [INSTRUCTIONS, *([context] if context else []), f"Customer: {asks}"]


def _show_prompt(console: Terminal, title: str, prompt: list[str]) -> None:
    parts = [Text(part, "green" if part.startswith("<learned>") else "") for part in prompt]
    console.print(Panel(Text("\n\n").join(parts), title=title, title_align="left"))
