"""`reflexio playbooks`: what users taught, and what holds for everybody. A number names one playbook of either kind."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from reflexio.cli.exit_codes import fail
from reflexio.cli.options import (
    SHOWN,
    AgentVersion,
    AsJson,
    Limit,
    PlaybookName,
    Scope,
    ShowAll,
    Url,
    User,
    Yes,
    confirm,
    connect,
)
from reflexio.cli.output import (
    counted,
    moment,
    pages,
    print_fields,
    print_json,
    print_more,
    print_response,
    print_table,
)
from reflexio.cli.provenance import print_provenance

if TYPE_CHECKING:
    from reflexio.client.sync import ReflexioClient
    from reflexio.models.playbook import (
        AgentPlaybook,
        GetAgentPlaybooksResponse,
        GetUserPlaybooksResponse,
        UserPlaybook,
    )

app = typer.Typer(help="Playbooks of users and of agents: list, show, edit, delete.", no_args_is_help=True)
Number = Annotated[int, typer.Argument(help="The number that `reflexio playbooks list` shows.")]
STATUSES = ("current", "pending", "archived", "merged", "superseded")
KINDS = ("user", "agent")
Conditions = dict[str, Any]


@app.command("list", epilog="Example: reflexio playbooks list --kind agent --agent-version v2")
def list_playbooks(
    kind: Annotated[str | None, typer.Option(help="Only playbooks of this kind: user or agent.")] = None,
    user: User = None,
    agent_version: AgentVersion = None,
    playbook_name: PlaybookName = None,
    query: Annotated[str | None, typer.Option(help="Only those that contain this text.")] = None,
    review: Annotated[
        str | None, typer.Option(help="Only agent playbooks with this decision: pending, approved or rejected.")
    ] = None,
    status: Annotated[str, typer.Option(help=f"One of: {', '.join(STATUSES)}, any.")] = "current",
    limit: Limit = SHOWN,
    show_all: ShowAll = False,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """List playbooks, the newest first: those of agents, then those of users.

    In a pipe a line has: number, whose it is, state, agent version, type, scope, when it applies, what to do.
    """
    if kind not in (None, *KINDS):
        fail(f"There is no kind {kind!r}: it is user or agent.", 2)
    if status not in (*STATUSES, "any"):
        fail(f"There is no status {status!r}: it is one of {', '.join(STATUSES)}, any.", 2)
    statuses = list(STATUSES) if status == "any" else [status]
    most = None if show_all else limit
    shared = {
        "agent_version": agent_version,
        "playbook_name": playbook_name,
        "query": query,
        "status_filter": statuses,
    }
    agents: list[AgentPlaybook] = []
    users: list[UserPlaybook] = []
    agents_go_on = users_go_on = False
    with connect(url) as client:
        if kind != "user" and user is None:
            conditions = {**shared, "playbook_status_filter": [review] if review else None}
            agents, agents_go_on = _agent_playbooks(client, most, conditions)
        if kind != "agent" and review is None:
            users, users_go_on = _user_playbooks(client, most, {**shared, "user_id": user})
    has_more = agents_go_on or users_go_on
    if as_json:
        print_json({"agent_playbooks": agents, "user_playbooks": users, "has_more": has_more})
        return
    print_table(
        ("number", "of", "state", "version", "type", "scope", "when", "do"),
        [*map(_agent_row, agents), *map(_user_row, users)],
        empty="There are no such playbooks. `reflexio publish` sends conversations to learn from.",
    )
    print_more(has_more)


@app.command(epilog="Example: reflexio playbooks show 12")
def show(number: Number, as_json: AsJson = False, url: Url = "") -> None:
    """Show one playbook, where it comes from, and what happened to it."""
    with connect(url) as client:
        playbook = _one(client, number)
        kind = "agent_playbook" if _is_of_agent(playbook) else "user_playbook"
        provenance = client.get_provenance(kind, number)
    if as_json:
        print_json({kind: playbook, "provenance": provenance})
        return
    print_fields(_fields(playbook))
    print_provenance(provenance)


@app.command(epilog='Example: reflexio playbooks edit 12 --content "Ask for the order number first."')
def edit(
    number: Number,
    content: Annotated[str | None, typer.Option(help="What to do.")] = None,
    trigger: Annotated[str | None, typer.Option(help="When it applies.")] = None,
    rationale: Annotated[str | None, typer.Option(help="Why.")] = None,
    scope: Scope = None,
    playbook_name: Annotated[str | None, typer.Option(help="The new type.")] = None,
    reason: Annotated[str, typer.Option(help="Why it is changed; agent playbooks keep it.")] = "",
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Change the wording, scope or type of one playbook. `reflexio review edit` also approves it."""
    changes: Conditions = {
        "content": content,
        "trigger": trigger,
        "rationale": rationale,
        "scope": scope,
        "playbook_name": playbook_name,
    }
    if all(value is None for value in changes.values()):
        fail("Give what to change: --content, --trigger, --rationale, --scope or --playbook-name.", 2)
    with connect(url) as client:
        if _is_of_agent(_one(client, number)):
            response = client.update_agent_playbook(number, reason=reason, **changes)
        else:
            response = client.update_user_playbook(number, **changes)
    print_response(response, response.msg, as_json=as_json)


@app.command(epilog="Example: reflexio playbooks delete 12 13 --yes")
def delete(
    numbers: Annotated[list[int], typer.Argument(help="Numbers that `reflexio playbooks list` shows.")],
    yes: Yes = False,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Delete playbooks. It cannot be undone. An unknown number changes nothing and is an error."""
    with connect(url) as client:
        playbooks = [_one(client, number) for number in numbers]
        confirm(f"Delete {counted(len(numbers), 'playbook')}?", yes=yes)
        of_agents = [number for number, playbook in zip(numbers, playbooks, strict=True) if _is_of_agent(playbook)]
        of_users = [number for number in numbers if number not in of_agents]
        deleted = 0
        if of_agents:
            deleted += client.delete_agent_playbooks_by_ids(of_agents).deleted_count
        if of_users:
            deleted += client.delete_user_playbooks_by_ids(of_users).deleted_count
    if as_json:
        print_json({"deleted_count": deleted})
    else:
        print_fields([("deleted", counted(deleted, "playbook"))])


def _agent_playbooks(
    client: "ReflexioClient", limit: int | None, conditions: Conditions
) -> "tuple[list[AgentPlaybook], bool]":
    def page(count: int, cursor: str | None) -> "tuple[list[AgentPlaybook], GetAgentPlaybooksResponse]":
        response = client.get_agent_playbooks(force_refresh=True, limit=count, cursor=cursor, **conditions)
        return response.agent_playbooks, response

    return pages(page, limit)


def _user_playbooks(
    client: "ReflexioClient", limit: int | None, conditions: Conditions
) -> "tuple[list[UserPlaybook], bool]":
    def page(count: int, cursor: str | None) -> "tuple[list[UserPlaybook], GetUserPlaybooksResponse]":
        response = client.get_user_playbooks(limit=count, cursor=cursor, **conditions)
        return response.user_playbooks, response

    return pages(page, limit)


def _one(client: "ReflexioClient", number: int) -> "AgentPlaybook | UserPlaybook":
    from reflexio.errors import NotFound

    found: list[AgentPlaybook | UserPlaybook] = [
        *_agent_playbooks(client, 1, {"agent_playbook_id": number, "status_filter": list(STATUSES)})[0],
        *_user_playbooks(client, 1, {"user_playbook_id": number, "status_filter": list(STATUSES)})[0],
    ]
    if not found:
        raise NotFound("`reflexio playbooks list` shows their numbers.", what="playbook", id=number)
    return found[0]


def _is_of_agent(playbook: "AgentPlaybook | UserPlaybook") -> bool:
    return hasattr(playbook, "agent_playbook_id")


def _state(playbook: "AgentPlaybook | UserPlaybook") -> str:
    """The status of what is no longer current; of a current agent playbook the decision about it."""
    if playbook.status.value != "current" or not _is_of_agent(playbook):
        return playbook.status.value
    return str(getattr(playbook, "playbook_status", ""))


def _agent_row(playbook: "AgentPlaybook") -> tuple[object, ...]:
    return (playbook.agent_playbook_id, "agent", *_shared_cells(playbook))


def _user_row(playbook: "UserPlaybook") -> tuple[object, ...]:
    return (playbook.user_playbook_id, playbook.user_id or "user", *_shared_cells(playbook))


def _shared_cells(playbook: "AgentPlaybook | UserPlaybook") -> tuple[object, ...]:
    return (
        _state(playbook),
        playbook.agent_version,
        playbook.playbook_name,
        playbook.scope.value,
        playbook.trigger,
        playbook.content,
    )


def _fields(playbook: "AgentPlaybook | UserPlaybook") -> list[tuple[str, object]]:
    outcomes = playbook.outcomes
    return [
        ("number", getattr(playbook, "agent_playbook_id", None) or getattr(playbook, "user_playbook_id", None)),
        ("of", "agent" if _is_of_agent(playbook) else getattr(playbook, "user_id", None) or "user"),
        ("agent version", playbook.agent_version),
        ("type", playbook.playbook_name),
        ("when", playbook.trigger),
        ("do", playbook.content),
        ("why", playbook.rationale),
        ("scope", playbook.scope.value.replace("_", " ")),
        ("state", _state(playbook)),
        ("support", getattr(playbook, "support", None)),
        ("replaces", ", ".join(map(str, getattr(playbook, "replaces", [])))),
        ("outcomes", outcomes and f"helped {outcomes.helped}, hurt {outcomes.hurt}, repeated {outcomes.repeated}"),
        ("created", moment(playbook.created_at)),
        ("source", playbook.source),
        ("tags", ", ".join(playbook.tags)),
    ]
