"""`reflexio review`: what waits for a decision, and the decision, in the terminal.

Without a command it goes through the queue in a terminal, and lists it where nobody can answer.
"""

import getpass
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from reflexio.client.sync import ReflexioClient
    from reflexio.models.playbook import AgentPlaybook
    from reflexio.models.review import ReviewItem, ReviewResponse, Testimony

app = typer.Typer(help="Agent playbooks that wait for a person: list, show, approve, reject, edit, undo.")

Url = Annotated[str, typer.Option(help="The server (REFLEXIO_URL, else this machine's).")]
Ids = Annotated[list[int], typer.Argument(help="Numbers of agent playbooks.")]
Number = Annotated[int, typer.Argument(help="Number of an agent playbook.")]
Version = Annotated[str | None, typer.Option("--agent-version", help="Only of this agent version.")]
Type = Annotated[str | None, typer.Option("--playbook-name", help="Only of this type.")]
Reason = Annotated[str, typer.Option(help="Why; it is kept.")]
Reviewer = Annotated[str, typer.Option(help="Who decides; it is kept (the name you are logged in with).")]
KEYS = "[a]pprove  [r]eject  [e]dit and approve  [s]kip  [q]uit"


def _connect(url: str) -> "ReflexioClient":
    # Here, because a server that starts needs no client.
    from reflexio.client.sync import ReflexioClient

    return ReflexioClient(url_endpoint=url)


def is_terminal() -> bool:
    """Whether somebody is there to answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _who(reviewer: str) -> str:
    if reviewer:
        return reviewer
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # nobody is logged in, as in a container
        return ""


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    agent_version: Version = None,
    playbook_name: Type = None,
    reviewer: Reviewer = "",
    url: Url = "",
) -> None:
    if context.invoked_subcommand is not None:
        return
    with _connect(url) as client:
        items = _queue(client, agent_version, playbook_name)
        if is_terminal():
            _walk(client, items, _who(reviewer))
        else:
            _list(items)


@app.command("list")
def list_queue(agent_version: Version = None, playbook_name: Type = None, url: Url = "") -> None:
    """Show what waits for a decision, one line each."""
    with _connect(url) as client:
        _list(_queue(client, agent_version, playbook_name))


@app.command()
def show(number: Number, url: Url = "") -> None:
    """Show one with its evidence, disagreement, difference and history."""
    with _connect(url) as client:
        (item,) = client.get_review_queue(agent_playbook_id=number).items
        typer.echo(told(item))


@app.command()
def approve(numbers: Ids, reason: Reason = "", reviewer: Reviewer = "", url: Url = "") -> None:
    """Approve several, all or none. What they replace is retired."""
    with _connect(url) as client:
        _say(client.review_agent_playbooks(numbers, playbook_status="approved", reviewer=_who(reviewer), reason=reason))


@app.command()
def reject(numbers: Ids, reason: Reason = "", reviewer: Reviewer = "", url: Url = "") -> None:
    """Reject several, all or none."""
    with _connect(url) as client:
        _say(client.review_agent_playbooks(numbers, playbook_status="rejected", reviewer=_who(reviewer), reason=reason))


@app.command()
def edit(
    number: Number,
    content: Annotated[str | None, typer.Option(help="What it says.")] = None,
    trigger: Annotated[str | None, typer.Option(help="When it applies.")] = None,
    rationale: Annotated[str | None, typer.Option(help="Why.")] = None,
    approved: Annotated[bool, typer.Option("--approve", help="Approve it at once.")] = False,
    reason: Reason = "",
    reviewer: Reviewer = "",
    url: Url = "",
) -> None:
    """Change the wording of one, and approve it if so wished. Without a wording it asks for one."""
    with _connect(url) as client:
        if content is None and trigger is None and rationale is None:
            (item,) = client.get_review_queue(agent_playbook_id=number).items
            content = _edited(item.agent_playbook)
        done = client.update_agent_playbook(
            number,
            content=content,
            trigger=trigger,
            rationale=rationale,
            playbook_status="approved" if approved else None,
            reviewer=_who(reviewer),
            reason=reason,
        )
        typer.echo(done.msg)


@app.command()
def undo(numbers: Ids, reason: Reason = "", reviewer: Reviewer = "", url: Url = "") -> None:
    """Take the last decision about each back. What was retired stands again."""
    with _connect(url) as client:
        _say(client.undo_review(numbers, reviewer=_who(reviewer), reason=reason))


def _queue(client: "ReflexioClient", agent_version: str | None, playbook_name: str | None) -> "list[ReviewItem]":
    items: list[ReviewItem] = []
    cursor = None
    while True:
        page = client.get_review_queue(agent_version=agent_version, playbook_name=playbook_name, cursor=cursor)
        items += page.items
        cursor = page.next_cursor
        if cursor is None:
            return items


def _list(items: "list[ReviewItem]") -> None:
    for item in items:
        playbook = item.agent_playbook
        marks = [f"{item.support} users"] + [f"{len(item.disagreement)} disagree"] * bool(item.disagreement)
        marks += [f"replaces {', '.join(map(str, playbook.replaces))}"] * bool(playbook.replaces)
        typer.echo(f"{playbook.agent_playbook_id}\t{playbook.playbook_name}\t{'; '.join(marks)}\t{_line(playbook)}")
    if not items:
        typer.echo("Nothing waits for a decision.")


def _walk(client: "ReflexioClient", items: "list[ReviewItem]", reviewer: str) -> None:
    """One after the other; what was decided is decided even if the rest is left for later."""
    for place, item in enumerate(items, start=1):
        typer.echo(f"\n── {place} of {len(items)} ──\n{told(item)}\n")
        if not _decided(client, item.agent_playbook, reviewer):
            return
    typer.echo("Nothing waits for a decision." if not items else "That was all.")


def _decided(client: "ReflexioClient", playbook: "AgentPlaybook", reviewer: str) -> bool:
    """False to stop here."""
    number = playbook.agent_playbook_id
    match typer.prompt(KEYS, default="s", show_default=False).strip().lower()[:1]:
        case "q":
            return False
        case "a":
            _say(client.review_agent_playbooks([number], playbook_status="approved", reviewer=reviewer))
        case "r":
            reason = typer.prompt("Why", default="", show_default=False)
            _say(client.review_agent_playbooks([number], playbook_status="rejected", reviewer=reviewer, reason=reason))
        case "e":
            text = _edited(playbook)
            done = client.update_agent_playbook(number, content=text, playbook_status="approved", reviewer=reviewer)
            typer.echo(done.msg)
        case _:
            typer.echo("Left for later.")
    return True


def _edited(playbook: "AgentPlaybook") -> str:
    return str(typer.prompt("Say it so", default=playbook.content)).strip()


def _say(done: "ReviewResponse") -> None:
    typer.echo(done.msg)
    if done.retired_ids:
        typer.echo(f"Retired: {', '.join(map(str, done.retired_ids))}")
    if done.restored_ids:
        typer.echo(f"Stands again: {', '.join(map(str, done.restored_ids))}")


def _line(playbook: "AgentPlaybook") -> str:
    said = f"{playbook.trigger}: {playbook.content}" if playbook.trigger else playbook.content
    return " ".join(said.split())


def told(item: "ReviewItem") -> str:
    """All that speaks for and against a playbook, in lines."""
    playbook = item.agent_playbook
    lines = [
        f"{playbook.agent_playbook_id}  {playbook.playbook_name}  {playbook.agent_version}  "
        f"{playbook.playbook_status.value}",
        *([f"When: {playbook.trigger}"] if playbook.trigger else []),
        f"Do:   {playbook.content}",
        *([f"Why:  {playbook.rationale}"] if playbook.rationale else []),
        f"Support: {item.support} users, {item.evidence_count} playbooks",
        *(f"  + {_testimony(each)}" for each in item.evidence),
        *(["Disagreement:"] if item.disagreement else []),
        *(f"  - {_testimony(each)}" for each in item.disagreement),
        *([f"Replaces {', '.join(map(str, playbook.replaces))}:", item.difference] if item.replaces else []),
        *(["History:"] if item.history else []),
        *(f"  {_moment(each.at)} {each.op} {each.actor} {each.to_status} {each.reason}" for each in item.history),
    ]
    return "\n".join(line.rstrip() for line in lines)


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


def _testimony(each: "Testimony") -> str:
    said = " ".join((each.source_span or each.content).split())
    return f"{each.user_id or 'somebody'}: {said}"
