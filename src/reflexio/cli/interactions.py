"""`reflexio interactions`: the conversations that were published."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from reflexio.cli.exit_codes import fail
from reflexio.cli.options import SHOWN, AsJson, ShowAll, Source, Url, User, Yes, confirm, connect
from reflexio.cli.output import counted, heading, moment, pages, print_json, print_more, print_response, print_table
from reflexio.cli.provenance import print_turns
from reflexio.cli.terminal import echo

if TYPE_CHECKING:
    from reflexio.client.sync import ReflexioClient
    from reflexio.models.interaction import GetRequestsResponse, Session

app = typer.Typer(help="Conversations: list, show, delete.", no_args_is_help=True)
Limit = Annotated[int, typer.Option("--limit", help="Show those of at most this many publishes.", min=1)]


@app.command("list", epilog="Example: reflexio interactions list --user ann --limit 50")
def list_interactions(
    user: User = None,
    session: Annotated[str | None, typer.Option(help="Only of this session.")] = None,
    source: Source = None,
    limit: Limit = SHOWN,
    show_all: ShowAll = False,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """List conversations, the newest first.

    In a pipe a line has: session, user, time of the first shown publish, number of turns, first words.
    """
    conditions = {"user_id": user, "session_id": session, "source": source}
    with connect(url) as client:
        sessions, has_more = _sessions(client, None if show_all else limit, conditions)
    if as_json:
        print_json({"sessions": sessions, "has_more": has_more})
        return
    print_table(
        ("session", "user", "when", "turns", "first words"),
        map(_row, sessions),
        empty="There are no conversations yet. `reflexio publish` sends some.",
    )
    print_more(has_more)


@app.command(epilog="Example: reflexio interactions show session-7")
def show(
    name: Annotated[str, typer.Argument(help="The id of a session, or of a publish (request_id).")],
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Show one conversation with all its turns."""
    with connect(url) as client:
        sessions = _named(client, name)
    if as_json:
        print_json({"sessions": sessions})
        return
    for session in sessions:
        for published in session.requests:
            request = published.request
            heading(f"{moment(request.created_at)}  {request.user_id}  {request.agent_version}".rstrip())
            echo(f"  session {request.session_id}, request {request.request_id}")
            print_turns(published.interactions)


@app.command(epilog="Example: reflexio interactions delete --session session-7 --yes")
def delete(
    session: Annotated[str | None, typer.Option(help="Delete all publishes of this session.")] = None,
    request: Annotated[list[str] | None, typer.Option(help="Delete this publish. May be given more than once.")] = None,
    turn: Annotated[int | None, typer.Option(help="Delete this turn (interaction_id); needs --user.")] = None,
    user: Annotated[str | None, typer.Option(help="The user of --turn.")] = None,
    yes: Yes = False,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Delete a session, publishes, or one turn. What was learned from them stays; it cannot be undone.

    `reflexio erasure run` deletes everything of a user.
    """
    if sum(given is not None for given in (session, request, turn)) != 1 or (turn is None) != (user is None):
        fail("Give one of --session, --request, or --turn with --user.", 2)
    with connect(url) as client:
        if session is not None:
            count = sum(len(found.requests) for found in _sessions(client, None, {"session_id": session})[0])
            confirm(f"Delete {counted(count, 'publish', 'publishes')} of session {session!r}?", yes=yes)
            deletion: Any = client.delete_session(session, wait_for_response=True)
        elif request is not None:
            confirm(f"Delete {counted(len(request), 'publish', 'publishes')}?", yes=yes)
            deletion = client.delete_requests_by_ids(request)
        else:
            confirm(f"Delete turn {turn} of {user!r}?", yes=yes)
            deletion = client.delete_interaction(str(user), int(turn or 0), wait_for_response=True)
    print_response(deletion, deletion.message, as_json=as_json)


def _sessions(client: "ReflexioClient", limit: int | None, conditions: dict[str, Any]) -> "tuple[list[Session], bool]":
    """The publishes by session, oldest first: one that goes on over a page is put together again."""

    def page(count: int, cursor: str | None) -> "tuple[list[Any], GetRequestsResponse]":
        response = client.get_requests(top_k=count, cursor=cursor, **conditions)
        return [(session, published) for session in response.sessions for published in session.requests], response

    publishes, has_more = pages(page, limit)
    by_id: dict[str, Session] = {}
    for session, published in publishes:
        known = by_id.setdefault(session.session_id, session.model_copy(update={"requests": []}))
        known.requests.append(published)
    for known in by_id.values():
        known.requests.reverse()
    return list(by_id.values()), has_more


def _named(client: "ReflexioClient", name: str) -> "list[Session]":
    from reflexio.errors import NotFound

    for conditions in ({"session_id": name}, {"request_id": name}):
        if sessions := _sessions(client, None, conditions)[0]:
            return sessions
    raise NotFound("`reflexio interactions list` shows the sessions.", what="session or publish", id=name)


def _row(session: "Session") -> tuple[object, ...]:
    first, turns = session.requests[0], [turn for each in session.requests for turn in each.interactions]
    words = next((turn.content for turn in turns if turn.content), "")
    return session.session_id, first.request.user_id, moment(first.request.created_at), len(turns), words[:200]
