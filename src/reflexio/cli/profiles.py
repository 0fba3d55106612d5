"""`reflexio profiles`: the facts that were learned about users."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from reflexio.cli.exit_codes import fail
from reflexio.cli.options import SHOWN, AsJson, Limit, Scope, ShowAll, Source, Url, User, Yes, confirm, connect
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
    from reflexio.models.profile import GetProfilesResponse, UserProfile

app = typer.Typer(help="Facts about users: list, show, edit, delete.", no_args_is_help=True)
ProfileId = Annotated[str, typer.Argument(help="The id that `reflexio profiles list` shows.")]
STATUSES = ("current", "pending", "archived", "merged", "superseded")
Status = Annotated[str, typer.Option("--status", help=f"One of: {', '.join(STATUSES)}, any.")]


@app.command("list", epilog="Example: reflexio profiles list --user ann")
def list_profiles(
    user: User = None,
    query: Annotated[str | None, typer.Option(help="Only those that contain this text.")] = None,
    status: Status = "current",
    source: Source = None,
    limit: Limit = SHOWN,
    show_all: ShowAll = False,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """List what is known about one user, or about all, the newest first.

    In a pipe a line has: id, user, status, last change, scope, text.
    """
    conditions = {"user_id": user, "query": query, "source": source}
    with connect(url) as client:
        rows, has_more = _read(client, status, None if show_all else limit, conditions)
    if as_json:
        print_json({"user_profiles": rows, "has_more": has_more})
        return
    print_table(
        ("id", "user", "status", "changed", "scope", "what is known"),
        (
            (row.profile_id, row.user_id, row.status, moment(row.last_modified_timestamp), row.scope, row.content)
            for row in rows
        ),
        empty="Nothing is known yet. `reflexio publish` sends conversations to learn from.",
    )
    print_more(has_more)


@app.command(epilog="Example: reflexio profiles show 3f2b8c1e-5a0d-4c8e-9d55-0f6a3a1b2c4d")
def show(profile_id: ProfileId, as_json: AsJson = False, url: Url = "") -> None:
    """Show one profile, the words that it was learned from, and what happened to it."""
    with connect(url) as client:
        profile = _one(client, profile_id)
        provenance = client.get_provenance("profile", profile_id)
    if as_json:
        print_json({"user_profile": profile, "provenance": provenance})
        return
    print_fields(
        (
            ("id", profile.profile_id),
            ("user", profile.user_id),
            ("what is known", profile.content),
            ("scope", profile.scope.value.replace("_", " ")),
            ("status", profile.status.value),
            ("changed", moment(profile.last_modified_timestamp)),
            ("valid for", profile.profile_time_to_live.value.replace("_", " ")),
            ("source", profile.source),
            ("tags", ", ".join(profile.tags)),
        )
    )
    print_provenance(provenance)


@app.command(epilog='Example: reflexio profiles edit 3f2b8c1e-5a0d-4c8e-9d55-0f6a3a1b2c4d --content "Lives in Oslo."')
def edit(
    profile_id: ProfileId,
    content: Annotated[str | None, typer.Option(help="The new text.")] = None,
    scope: Scope = None,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Change the text or the scope of one profile."""
    if content is None and scope is None:
        fail("Give --content, --scope or both.", 2)
    changes: dict[str, Any] = {"content": content, "scope": scope}
    with connect(url) as client:
        user = _one(client, profile_id).user_id
        response = client.update_user_profile(user, profile_id, **changes)
    print_response(response, response.msg, as_json=as_json)


@app.command(epilog="Example: reflexio profiles delete 3f2b8c1e-5a0d-4c8e-9d55-0f6a3a1b2c4d --yes")
def delete(
    profile_ids: Annotated[list[str], typer.Argument(help="Ids that `reflexio profiles list` shows.")],
    yes: Yes = False,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Delete profiles. It cannot be undone. An unknown id changes nothing and is an error."""
    with connect(url) as client:
        for profile_id in profile_ids:
            _one(client, profile_id)
        confirm(f"Delete {counted(len(profile_ids), 'profile')}?", yes=yes)
        response = client.delete_profiles_by_ids(profile_ids)
    print_response(response, response.message, as_json=as_json)


def _read(
    client: "ReflexioClient", status: str, limit: int | None, conditions: dict[str, Any]
) -> "tuple[list[UserProfile], bool]":
    if status not in (*STATUSES, "any"):
        fail(f"There is no status {status!r}: it is one of {', '.join(STATUSES)}, any.", 2)
    rows: list[UserProfile] = []
    has_more = False
    for name in STATUSES if status == "any" else (status,):

        def page(count: int, cursor: str | None, name: str = name) -> "tuple[list[UserProfile], GetProfilesResponse]":
            response = client.get_all_profiles(count, cursor=cursor, status_filter=name, **conditions)
            return response.user_profiles, response

        if limit is not None and len(rows) >= limit:
            return rows, True
        some, more = pages(page, None if limit is None else limit - len(rows))
        rows, has_more = rows + some, has_more or more
    return rows, has_more


def _one(client: "ReflexioClient", profile_id: str) -> "UserProfile":
    from reflexio.errors import NotFound

    for profile in _read(client, "any", 1, {"profile_id": profile_id})[0]:
        return profile
    raise NotFound("`reflexio profiles list` shows their ids.", what="profile", id=profile_id)
