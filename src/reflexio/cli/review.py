"""`reflexio review`: the agent playbooks that wait for a decision, and the decisions.

Without a command it asks about one playbook after the other in a terminal, and lists them anywhere else.
"""

import getpass
from typing import TYPE_CHECKING, Annotated

import typer

from reflexio.cli.exit_codes import WRONG_COMMAND, fail
from reflexio.cli.options import AgentVersion, AsJson, PlaybookName, Scope, Url, connect, is_terminal
from reflexio.cli.output import moment, print_json, print_table, print_text
from reflexio.cli.terminal import echo, visible

if TYPE_CHECKING:
    from reflexio.client.sync import ReflexioClient
    from reflexio.models.playbook import AgentPlaybook
    from reflexio.models.review import ReviewItem, ReviewResponse, SimilarPlaybook, SupportingQuote

app = typer.Typer(
    help="Review agent playbooks: list, show, approve, reject, edit, undo.", epilog="Example: reflexio review"
)

Ids = Annotated[list[int], typer.Argument(help="Numbers of agent playbooks.")]
Number = Annotated[int, typer.Argument(help="Number of an agent playbook.")]
OnlyScope = Annotated[str | None, typer.Option("--scope", help="Only this scope: always or when_relevant.")]
Reason = Annotated[str, typer.Option(help="The reason, stored with the decision.")]
Reviewer = Annotated[str, typer.Option(help="Name of the reviewer, stored with the decision (your login name).")]
CHOICES = "[a]pprove  [r]eject  [e]dit and approve  [s]kip  [q]uit"
KEYS = "areqs"
EMPTY = "Nothing waits for a decision."


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
    agent_version: AgentVersion = None,
    playbook_name: PlaybookName = None,
    scope: OnlyScope = None,
    reviewer: Reviewer = "",
    url: Url = "",
) -> None:
    """Go through the agent playbooks that wait for a decision, and ask about each.

    Without an interactive terminal it lists them.
    """
    if context.invoked_subcommand is not None:
        if any((agent_version, playbook_name, scope, reviewer, url)):
            fail(f"Give options behind the command: reflexio review {context.invoked_subcommand} …", WRONG_COMMAND)
        return
    with connect(url) as client:
        items = _queue(client, agent_version, playbook_name, scope)
        if is_terminal():
            _walk(client, items, _reviewer_name(reviewer))
        else:
            _list(items)


@app.command("list", epilog="Example: reflexio review list --agent-version v2.1.0")
def list_queue(
    agent_version: AgentVersion = None,
    playbook_name: PlaybookName = None,
    scope: OnlyScope = None,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """List the review queue.

    In a pipe a line has: number, type, who taught it and who disagrees, wording.
    """
    with connect(url) as client:
        items = _queue(client, agent_version, playbook_name, scope)
    if as_json:
        print_json({"items": items})
    else:
        _list(items)


@app.command(epilog="Example: reflexio review show 7")
def show(number: Number, as_json: AsJson = False, url: Url = "") -> None:
    """Show one agent playbook with its evidence, disagreement, difference to what it replaces, and history."""
    with connect(url) as client:
        (item,) = client.get_review_queue(agent_playbook_id=number).items
    if as_json:
        print_json(item)
    else:
        _print_item(item)


@app.command(epilog='Example: reflexio review approve 7 8 --reason "as we do it"')
def approve(numbers: Ids, reason: Reason = "", reviewer: Reviewer = "", as_json: AsJson = False, url: Url = "") -> None:
    """Approve one or more agent playbooks, all or none. What they replace is retired in the same transaction."""
    with connect(url) as client:
        _decide(client, numbers, "approved", _reviewer_name(reviewer), reason, as_json=as_json)


@app.command(epilog='Example: reflexio review reject 9 --reason "not our policy"')
def reject(numbers: Ids, reason: Reason = "", reviewer: Reviewer = "", as_json: AsJson = False, url: Url = "") -> None:
    """Reject one or more agent playbooks, all or none."""
    with connect(url) as client:
        _decide(client, numbers, "rejected", _reviewer_name(reviewer), reason, as_json=as_json)


@app.command(epilog='Example: reflexio review edit 7 --content "Ask the neighbours first." --approve')
def edit(
    number: Number,
    content: Annotated[str | None, typer.Option(help="The new text.")] = None,
    trigger: Annotated[str | None, typer.Option(help="When it applies.")] = None,
    rationale: Annotated[str | None, typer.Option(help="The rationale.")] = None,
    scope: Scope = None,
    approved: Annotated[bool, typer.Option("--approve", help="Approve it in the same call.")] = False,
    reason: Reason = "",
    reviewer: Reviewer = "",
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Change the wording or the scope of one agent playbook, and with --approve approve it.

    Without any change it asks when the playbook applies and what to do.
    """
    with connect(url) as client:
        if content is None and trigger is None and rationale is None and scope is None:
            (item,) = client.get_review_queue(agent_playbook_id=number).items
            trigger, content = _ask_wording(item.agent_playbook)
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
    if as_json:
        print_json(response)
    else:
        echo(response.msg)


@app.command(epilog="Example: reflexio review undo 7")
def undo(numbers: Ids, reason: Reason = "", reviewer: Reviewer = "", as_json: AsJson = False, url: Url = "") -> None:
    """Undo the last decision about each agent playbook, with the edit that came with it.

    What the decision had retired is in force again.
    """
    with connect(url) as client:
        response = client.undo_review(numbers, reviewer=_reviewer_name(reviewer), reason=reason)
    _print_response(response, as_json=as_json)


def _decide(
    client: "ReflexioClient", numbers: list[int], status: str, reviewer: str, reason: str = "", *, as_json: bool = False
) -> None:
    response = client.review_agent_playbooks(numbers, playbook_status=status, reviewer=reviewer, reason=reason)
    _print_response(response, as_json=as_json)


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
    columns = ("number", "type", "taught by", "wording")
    if not items:
        echo(EMPTY)
        return
    print_table(columns, map(_row, items))


def _row(item: "ReviewItem") -> tuple[object, ...]:
    playbook = item.agent_playbook
    against = len(item.disagreement)
    marks = [item.taught_by] + [f"{against} disagree{'s' * (against == 1)}"] * bool(against)
    marks += ["always"] * (playbook.scope.value == "always")
    marks += [f"replaces {', '.join(map(str, playbook.replaces))}"] * bool(playbook.replaces)
    return playbook.agent_playbook_id, playbook.playbook_name, "; ".join(marks), _line(playbook)


def _walk(client: "ReflexioClient", items: "list[ReviewItem]", reviewer: str) -> None:
    """Asks about one playbook after the other. Each decision is stored at once."""
    from reflexio.errors import Conflict, InvalidRequest, NotFound

    for place, item in enumerate(items, start=1):
        echo(f"\n── {place} of {len(items)} ──")
        _print_item(item)
        echo()
        try:
            if not _ask_decision(client, item.agent_playbook, reviewer):
                return
        except (Conflict, InvalidRequest, NotFound) as error:
            # Somebody else may have decided about it meanwhile: the others still wait.
            echo(f"Nothing was stored: {error}", err=True)
    echo(EMPTY if not items else "That was the last one.")


def _ask_decision(client: "ReflexioClient", playbook: "AgentPlaybook", reviewer: str) -> bool:
    """Asks for one decision and stores it. False when the reviewer wants to stop."""
    number = playbook.agent_playbook_id
    match _ask_key():
        case "q":
            return False
        case "a":
            _decide(client, [number], "approved", reviewer)
        case "r":
            _decide(client, [number], "rejected", reviewer, typer.prompt("Reason", default="", show_default=False))
        case "e":
            trigger, text = _ask_wording(playbook)
            response = client.update_agent_playbook(
                number, trigger=trigger, content=text, playbook_status="approved", reviewer=reviewer
            )
            echo(response.msg)
        case _:
            echo("Skipped.")
    return True


def _ask_key() -> str:
    """The letter of one choice. Anything else, an empty line too, asks again: no decision is made by a slip."""
    while True:
        answer = str(typer.prompt(CHOICES, default="", show_default=False)).strip().lower()
        if answer and (answer in KEYS or answer in ("approve", "reject", "edit", "skip", "quit")):
            return answer[0]
        echo(f"{answer!r} is no choice." if answer else "Type one of the letters.")


def _ask_wording(playbook: "AgentPlaybook") -> tuple[str, str]:
    """When it applies and what to do. An empty answer keeps what is there; a dash removes when it applies."""
    content = str(typer.prompt("New wording", default=visible(playbook.content))).strip()
    before = visible(playbook.trigger or "")
    try:
        trigger = str(typer.prompt("When it applies (- for any time)", default=before or "-")).strip()
    except typer.Abort:
        if is_terminal():
            raise
        trigger = before  # a script that answers one question only
    return "" if trigger == "-" else trigger, content


def _print_response(response: "ReviewResponse", *, as_json: bool) -> None:
    if as_json:
        print_json(response)
        return
    echo(response.msg)
    if response.retired_ids:
        echo(f"Retired: {', '.join(map(str, response.retired_ids))}")
    if response.restored_ids:
        echo(f"Restored: {', '.join(map(str, response.restored_ids))}")


def _line(playbook: "AgentPlaybook") -> str:
    text = f"{playbook.trigger}: {playbook.content}" if playbook.trigger else playbook.content
    return " ".join(text.split())


def _print_item(item: "ReviewItem") -> None:
    for line in describe(item).splitlines():
        print_text(line.lstrip(), len(line) - len(line.lstrip()))


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
        *(f"  {moment(event.at)} {event.op} {event.actor} {event.to_status} {event.reason}" for event in item.history),
    ]
    return "\n".join(line.rstrip() for line in lines)


def _similar(near: "SimilarPlaybook") -> str:
    playbook = near.agent_playbook
    marks = f"{playbook.playbook_status.value}{', the opposite' * near.contradicts}"
    return f"{playbook.agent_playbook_id} ({marks}): {_line(playbook)}"


def _quote(quote: "SupportingQuote") -> str:
    text = " ".join((quote.source_span or quote.content).split())
    return f"{quote.user_id or 'unknown user'}: {text}"
