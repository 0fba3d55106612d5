"""`reflexio review`: the agent playbooks that wait for a decision, and the decisions.

Without a command it asks about one playbook after the other in a terminal, and lists them anywhere else.
"""

import getpass
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from reflexio.cli.terminal import echo

if TYPE_CHECKING:
    from reflexio.client.sync import ReflexioClient
    from reflexio.models.playbook import AgentPlaybook
    from reflexio.models.review import ReviewItem, ReviewResponse, SimilarPlaybook, SupportingQuote

app = typer.Typer(help="Review agent playbooks: list, show, approve, reject, edit, undo.")

Url = Annotated[str, typer.Option(help="Address of the server (REFLEXIO_URL, else http://127.0.0.1:8081).")]
Ids = Annotated[list[int], typer.Argument(help="Numbers of agent playbooks.")]
Number = Annotated[int, typer.Argument(help="Number of an agent playbook.")]
Version = Annotated[str | None, typer.Option("--agent-version", help="Only this agent version.")]
Type = Annotated[str | None, typer.Option("--playbook-name", help="Only this playbook type.")]
OnlyScope = Annotated[str | None, typer.Option("--scope", help="Only this scope: always or when_relevant.")]
Scope = Annotated[str | None, typer.Option("--scope", help="When it belongs into a prompt: always or when_relevant.")]
Reason = Annotated[str, typer.Option(help="The reason, stored with the decision.")]
Reviewer = Annotated[str, typer.Option(help="Name of the reviewer, stored with the decision (your login name).")]
CHOICES = "[a]pprove  [r]eject  [e]dit and approve  [s]kip  [q]uit"


def _connect(url: str) -> "ReflexioClient":
    # Loaded here: a starting server needs no client.
    from reflexio.client.sync import ReflexioClient

    return ReflexioClient(url_endpoint=url)


def is_terminal() -> bool:
    """Whether a person can answer questions."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _reviewer_name(reviewer: str) -> str:
    if reviewer:
        return reviewer
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no user is logged in, as in a container
        return ""


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    agent_version: Version = None,
    playbook_name: Type = None,
    scope: OnlyScope = None,
    reviewer: Reviewer = "",
    url: Url = "",
) -> None:
    if context.invoked_subcommand is not None:
        return
    with _connect(url) as client:
        items = _queue(client, agent_version, playbook_name, scope)
        if is_terminal():
            _walk(client, items, _reviewer_name(reviewer))
        else:
            _list(items)


@app.command("list")
def list_queue(
    agent_version: Version = None, playbook_name: Type = None, scope: OnlyScope = None, url: Url = ""
) -> None:
    """List the review queue, one playbook a line."""
    with _connect(url) as client:
        _list(_queue(client, agent_version, playbook_name, scope))


@app.command()
def show(number: Number, url: Url = "") -> None:
    """Show one agent playbook with its evidence, disagreement, difference and history."""
    with _connect(url) as client:
        (item,) = client.get_review_queue(agent_playbook_id=number).items
        echo(describe(item))


@app.command()
def approve(numbers: Ids, reason: Reason = "", reviewer: Reviewer = "", url: Url = "") -> None:
    """Approve one or more agent playbooks, all or none. The playbooks that they replace are retired."""
    with _connect(url) as client:
        _decide(client, numbers, "approved", _reviewer_name(reviewer), reason)


@app.command()
def reject(numbers: Ids, reason: Reason = "", reviewer: Reviewer = "", url: Url = "") -> None:
    """Reject one or more agent playbooks, all or none."""
    with _connect(url) as client:
        _decide(client, numbers, "rejected", _reviewer_name(reviewer), reason)


@app.command()
def edit(
    number: Number,
    content: Annotated[str | None, typer.Option(help="The new text.")] = None,
    trigger: Annotated[str | None, typer.Option(help="When it applies.")] = None,
    rationale: Annotated[str | None, typer.Option(help="The rationale.")] = None,
    scope: Scope = None,
    approved: Annotated[bool, typer.Option("--approve", help="Approve it in the same call.")] = False,
    reason: Reason = "",
    reviewer: Reviewer = "",
    url: Url = "",
) -> None:
    """Change the wording or scope of one agent playbook, and with --approve approve it. Without either it asks."""
    with _connect(url) as client:
        if content is None and trigger is None and rationale is None and scope is None:
            (item,) = client.get_review_queue(agent_playbook_id=number).items
            content = _ask_wording(item.agent_playbook)
        response = client.update_agent_playbook(
            number,
            content=content,
            trigger=trigger,
            rationale=rationale,
            scope=scope,
            playbook_status="approved" if approved else None,
            reviewer=_reviewer_name(reviewer),
            reason=reason,
        )
        echo(response.msg)


@app.command()
def undo(numbers: Ids, reason: Reason = "", reviewer: Reviewer = "", url: Url = "") -> None:
    """Undo the last decision about each agent playbook. Playbooks that the decision retired are restored."""
    with _connect(url) as client:
        _print_response(client.undo_review(numbers, reviewer=_reviewer_name(reviewer), reason=reason))


def _decide(client: "ReflexioClient", numbers: list[int], status: str, reviewer: str, reason: str = "") -> None:
    _print_response(client.review_agent_playbooks(numbers, playbook_status=status, reviewer=reviewer, reason=reason))


def _queue(
    client: "ReflexioClient", agent_version: str | None, playbook_name: str | None, scope: str | None
) -> "list[ReviewItem]":
    items: list[ReviewItem] = []
    cursor = None
    while True:
        page = client.get_review_queue(
            agent_version=agent_version, playbook_name=playbook_name, scope=scope, cursor=cursor
        )
        items += page.items
        cursor = page.next_cursor
        if cursor is None:
            return items


def _list(items: "list[ReviewItem]") -> None:
    for item in items:
        playbook = item.agent_playbook
        against = len(item.disagreement)
        marks = [item.taught_by] + [f"{against} disagree{'s' * (against == 1)}"] * bool(against)
        marks += ["always"] * (playbook.scope.value == "always")
        marks += [f"replaces {', '.join(map(str, playbook.replaces))}"] * bool(playbook.replaces)
        echo(f"{playbook.agent_playbook_id}\t{playbook.playbook_name}\t{'; '.join(marks)}\t{_line(playbook)}")
    if not items:
        echo("Nothing waits for a decision.")


def _walk(client: "ReflexioClient", items: "list[ReviewItem]", reviewer: str) -> None:
    """Asks about one playbook after the other. Each decision is stored at once."""
    for place, item in enumerate(items, start=1):
        echo(f"\n── {place} of {len(items)} ──\n{describe(item)}\n")
        if not _ask_decision(client, item.agent_playbook, reviewer):
            return
    echo("Nothing waits for a decision." if not items else "That was the last one.")


def _ask_decision(client: "ReflexioClient", playbook: "AgentPlaybook", reviewer: str) -> bool:
    """Asks for one decision and stores it. False when the reviewer wants to stop."""
    number = playbook.agent_playbook_id
    match typer.prompt(CHOICES, default="s", show_default=False).strip().lower()[:1]:
        case "q":
            return False
        case "a":
            _decide(client, [number], "approved", reviewer)
        case "r":
            _decide(client, [number], "rejected", reviewer, typer.prompt("Reason", default="", show_default=False))
        case "e":
            text = _ask_wording(playbook)
            response = client.update_agent_playbook(number, content=text, playbook_status="approved", reviewer=reviewer)
            echo(response.msg)
        case _:
            echo("Skipped.")
    return True


def _ask_wording(playbook: "AgentPlaybook") -> str:
    return str(typer.prompt("New wording", default=playbook.content)).strip()


def _print_response(response: "ReviewResponse") -> None:
    echo(response.msg)
    if response.retired_ids:
        echo(f"Retired: {', '.join(map(str, response.retired_ids))}")
    if response.restored_ids:
        echo(f"Restored: {', '.join(map(str, response.restored_ids))}")


def _line(playbook: "AgentPlaybook") -> str:
    text = f"{playbook.trigger}: {playbook.content}" if playbook.trigger else playbook.content
    return " ".join(text.split())


def describe(item: "ReviewItem") -> str:
    """A playbook with its evidence, disagreement, difference and history, as text."""
    playbook = item.agent_playbook
    lines = [
        f"{playbook.agent_playbook_id}  {playbook.playbook_name}  {playbook.agent_version}  "
        f"{playbook.playbook_status.value}",
        *([f"When: {playbook.trigger}"] if playbook.trigger else []),
        f"Do:   {playbook.content}",
        *([f"Why:  {playbook.rationale}"] if playbook.rationale else []),
        f"Scope: {playbook.scope.value.replace('_', ' ')}",
        f"Support: {item.taught_by}, in {item.evidence_count} playbook{'s' * (item.evidence_count != 1)}",
        *(f"  + {_quote(quote)}" for quote in item.evidence),
        *(["Disagreement:"] if item.disagreement else []),
        *(f"  - {_quote(quote)}" for quote in item.disagreement),
        *(["Near duplicates:"] if item.near_duplicates else []),
        *(f"  ~ {_similar(near)}" for near in item.near_duplicates),
        *([f"Replaces {', '.join(map(str, playbook.replaces))}:", item.difference] if item.replaces else []),
        *(["History:"] if item.history else []),
        *(f"  {_moment(event.at)} {event.op} {event.actor} {event.to_status} {event.reason}" for event in item.history),
    ]
    return "\n".join(line.rstrip() for line in lines)


def _similar(near: "SimilarPlaybook") -> str:
    playbook = near.agent_playbook
    marks = f"{playbook.playbook_status.value}{', the opposite' * near.contradicts}"
    return f"{playbook.agent_playbook_id} ({marks}): {_line(playbook)}"


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


def _quote(quote: "SupportingQuote") -> str:
    text = " ".join((quote.source_span or quote.content).split())
    return f"{quote.user_id or 'unknown user'}: {text}"
