"""`reflexio search` and `reflexio context`: what was learned that bears on a text, and what a prompt would get."""

from typing import Annotated, Any

import typer

from reflexio.cli.exit_codes import fail
from reflexio.cli.options import AgentVersion, AsJson, PlaybookName, Url, User, connect
from reflexio.cli.output import counted, moment, print_json, print_table
from reflexio.cli.terminal import echo

Query = Annotated[str, typer.Argument(help="What to look for, in your own words.")]


def search(
    query: Query,
    user: User = None,
    agent_version: AgentVersion = None,
    playbook_name: PlaybookName = None,
    turns: Annotated[bool, typer.Option("--turns", help="Search the conversations of --user instead.")] = False,
    top_k: Annotated[int, typer.Option(help="At most this many of each kind.", min=1)] = 5,
    mode: Annotated[str | None, typer.Option(help="How to search: hybrid, vector or fts (by words).")] = None,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Search what was learned: profiles and playbooks of --user, and approved agent playbooks.

    In a pipe a line has: kind, id, whose it is, text. A search of turns: id, time, role, text.
    """
    chosen: dict[str, Any] = {"search_mode": mode} if mode else {}
    if turns:
        _search_turns(query, user, {**chosen, "top_k": top_k}, as_json=as_json, url=url)
        return
    chosen |= {"user_id": user, "agent_version": agent_version, "playbook_name": playbook_name, "top_k": top_k}
    with connect(url) as client:
        found = client.search(query, **chosen)
    if as_json:
        print_json(found)
        return
    rows = [
        *(("profile", row.profile_id, row.user_id, row.content) for row in found.profiles),
        *(
            ("user playbook", row.user_playbook_id, row.user_id, _rule(row.trigger, row.content))
            for row in found.user_playbooks
        ),
        *(
            ("agent playbook", row.agent_playbook_id, row.agent_version, _rule(row.trigger, row.content))
            for row in found.agent_playbooks
        ),
    ]
    hint = "" if user else " Give --user to search what is known about one."
    print_table(("kind", "id", "of", "text"), rows, empty=f"Nothing that was learned fits.{hint}")
    _print_limits(found.degraded, found.msg)


def _search_turns(query: str, user: str | None, chosen: dict[str, Any], *, as_json: bool, url: str) -> None:
    if user is None:
        fail("A search of turns needs --user.", 2)
    with connect(url) as client:
        found = client.search_interactions(user, query, **chosen)
    if as_json:
        print_json(found)
        return
    rows = ((turn.interaction_id, moment(turn.created_at), turn.role, turn.content) for turn in found.interactions)
    print_table(("turn", "when", "role", "text"), rows, empty=f"No turn of {user} fits.")
    _print_limits(found.degraded, found.msg)


def context(
    message: Annotated[str, typer.Argument(help="The message that the next prompt answers; empty for none.")] = "",
    user: Annotated[str | None, typer.Option("--user", help="The user who writes.")] = None,
    agent_version: Annotated[str | None, typer.Option("--agent-version", help="The agent that answers.")] = None,
    max_tokens: Annotated[int, typer.Option(help="The room for it in the prompt.", min=1)] = 1000,
    include_pending: Annotated[
        bool, typer.Option("--include-pending", help="Also what waits for a person's approval.")
    ] = False,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Print the text that an agent would get into its next prompt.

    It goes to standard output, and how many learnings and tokens it has to standard error.
    """
    with connect(url) as client:
        response = client.get_context(
            message or None,
            user_id=user,
            agent_version=agent_version,
            max_tokens=max_tokens,
            include_pending=include_pending,
        )
    if as_json:
        print_json(response)
        return
    if response.context:
        echo(response.context)
    echo(f"{counted(len(response.items), 'learning')}, {counted(response.tokens, 'token')}", err=True)
    _print_limits(response.degraded, response.msg)


def _rule(trigger: str | None, content: str) -> str:
    return f"{trigger}: {content}" if trigger else content


def _print_limits(degraded: bool, message: str | None) -> None:
    if degraded and message:
        echo(message, err=True)
