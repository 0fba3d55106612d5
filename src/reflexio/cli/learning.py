"""Learning on demand: `aggregate`, `rerun`, `upgrade`, `downgrade`, and `stall`, which says why learning waits."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reflexio.cli.exit_codes import FAILED, fail
from reflexio.cli.options import AgentVersion, AsJson, PlaybookName, Source, Url, User, connect
from reflexio.cli.output import counted, follow, moment, print_fields, print_json, print_response, progress
from reflexio.cli.terminal import echo

if TYPE_CHECKING:
    from reflexio.client.sync import ReflexioClient
    from reflexio.models.operation import OperationStatusInfo

rerun = typer.Typer(help="Learn again from stored conversations; the result waits for `upgrade`.", no_args_is_help=True)
upgrade = typer.Typer(help="Put what a rerun learned into force.", no_args_is_help=True)
downgrade = typer.Typer(help="Bring back what an upgrade archived.", no_args_is_help=True)
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the end, with its progress.")]
After = Annotated[datetime | None, typer.Option("--after", help="Only turns from this time on (UTC).")]
Before = Annotated[datetime | None, typer.Option("--before", help="Only turns up to this time (UTC).")]
OnlyUnread = Annotated[
    bool, typer.Option("--only-unread", help="Only turns that the learner did not understand before.")
]
DEFAULT_VERSION = "agent-v0"
SERVICES = ("profile_generation", "playbook_generation", "playbook_aggregation")
Version = Annotated[str, typer.Option("--agent-version", help="The agent version.")]
STOP = "reflexio rerun cancel"


def aggregate(
    agent_version: Version = DEFAULT_VERSION,
    playbook_name: PlaybookName = None,
    wait: Wait = True,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Make agent playbooks of what several users taught. They wait for `reflexio review`."""
    with connect(url) as client:
        with progress("Aggregating"):
            response = client.run_playbook_aggregation(agent_version, playbook_name, wait_for_response=wait)
        print_response(response, response.message, as_json=as_json)
        if response.success and response.playbooks_generated and not as_json:
            echo("`reflexio review` shows them and asks for your decision.", err=True)
    if not response.success:
        raise typer.Exit(FAILED)


@rerun.command("profiles", epilog="Example: reflexio rerun profiles --user ann")
def rerun_profiles(
    user: User = None,
    source: Source = None,
    after: After = None,
    before: Before = None,
    only_unread: OnlyUnread = False,
    wait: Wait = True,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Learn the profiles of one user or of all again. Those in force stay until `reflexio upgrade profiles`."""
    with connect(url) as client:
        response = client.rerun_profile_generation(
            user_id=user, source=source, start_time=_utc(after), end_time=_utc(before), only_unread=only_unread
        )
        _finish(client, response, "profiles", wait=wait, as_json=as_json)


@rerun.command("playbooks", epilog="Example: reflexio rerun playbooks --agent-version v2")
def rerun_playbooks(
    agent_version: Version = DEFAULT_VERSION,
    playbook_name: PlaybookName = None,
    source: Source = None,
    after: After = None,
    before: Before = None,
    only_unread: OnlyUnread = False,
    wait: Wait = True,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Learn the user playbooks of one agent version again. Those in force stay until `reflexio upgrade playbooks`."""
    with connect(url) as client:
        response = client.rerun_playbook_generation(
            agent_version,
            start_time=_utc(after),
            end_time=_utc(before),
            playbook_name=playbook_name,
            source=source,
            only_unread=only_unread,
        )
        _finish(client, response, "playbooks", wait=wait, as_json=as_json)


@rerun.command("status", epilog="Example: reflexio rerun status")
def rerun_status(as_json: AsJson = False, url: Url = "") -> None:
    """Show how far the newest rerun of profiles, that of playbooks and the newest aggregation are."""
    with connect(url) as client:
        statuses = {name: client.get_operation_status(name).operation_status for name in SERVICES}
    if as_json:
        print_json(statuses)
        return
    for name, status in statuses.items():
        echo(f"{name.replace('_', ' ')}: {_progress_words(status) if status else 'none yet'}")


@rerun.command("cancel", epilog="Example: reflexio rerun cancel")
def rerun_cancel(
    service: Annotated[str | None, typer.Option(help=f"Only one of: {', '.join(SERVICES)}.")] = None,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Stop the reruns and aggregations in progress. What they have learned so far stays."""
    with connect(url) as client:
        response = client.cancel_operation(service)
    print_response(response, response.msg, as_json=as_json)


@upgrade.command("profiles", epilog="Example: reflexio upgrade profiles --user ann")
def upgrade_profiles(
    user: User = None,
    everybody: Annotated[
        bool, typer.Option("--everybody", help="Archive also the profiles of users for whom nothing is pending.")
    ] = False,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Make pending profiles current and archive the current ones; those archived before are deleted."""
    with connect(url) as client:
        response = client.upgrade_profiles(user, only_affected_users=not everybody)
    _end(response, as_json=as_json)


@upgrade.command("playbooks", epilog="Example: reflexio upgrade playbooks --agent-version v2")
def upgrade_playbooks(
    agent_version: AgentVersion = None, playbook_name: PlaybookName = None, as_json: AsJson = False, url: Url = ""
) -> None:
    """Make pending user playbooks current and archive the current ones; those archived before are deleted."""
    with connect(url) as client:
        response = client.upgrade_user_playbooks(agent_version, playbook_name)
    _end(response, as_json=as_json)


@downgrade.command("profiles", epilog="Example: reflexio downgrade profiles --user ann")
def downgrade_profiles(
    user: User = None,
    everybody: Annotated[
        bool, typer.Option("--everybody", help="Archive also the profiles of users for whom nothing is archived.")
    ] = False,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Exchange current and archived profiles."""
    with connect(url) as client:
        response = client.downgrade_profiles(user, only_affected_users=not everybody)
    _end(response, as_json=as_json)


@downgrade.command("playbooks", epilog="Example: reflexio downgrade playbooks --agent-version v2")
def downgrade_playbooks(
    agent_version: AgentVersion = None, playbook_name: PlaybookName = None, as_json: AsJson = False, url: Url = ""
) -> None:
    """Exchange current and archived user playbooks."""
    with connect(url) as client:
        response = client.downgrade_user_playbooks(agent_version, playbook_name)
    _end(response, as_json=as_json)


def stall(
    notified: Annotated[bool, typer.Option("--notified", help="Record that a person was told of the stall.")] = False,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Show whether learning waits because a provider refuses the key or the bill. Exit code 1 when it does."""
    with connect(url) as client:
        if notified:
            client.mark_stall_notified()
        state = client.get_stall_state()
    if as_json:
        print_json(state)
    elif not state.stalled:
        echo("Learning goes on: no provider refuses.")
    else:
        print_fields(
            (
                ("stalled", state.error_message),
                ("since", state.stalled_at and moment(int(state.stalled_at.timestamp()))),
                ("told", "yes" if state.notified_in_cc else "no"),
                ("remedy", "Mend what the message says; learning resumes by itself, and nothing is lost."),
            )
        )
    if state.stalled:
        raise typer.Exit(FAILED)


def _utc(moment_: datetime | None) -> Any:
    from datetime import UTC

    return moment_.replace(tzinfo=UTC) if moment_ and moment_.tzinfo is None else moment_


def _finish(client: "ReflexioClient", response: Any, what: str, *, wait: bool, as_json: bool) -> None:
    if not response.success:
        fail(response.msg or "The rerun did not begin.")
    if not wait:
        print_response(response, response.msg, as_json=as_json)
        return
    end = follow(f"Learning {what} again", client.follow_operation(response.operation_id), stop=STOP)
    if as_json:
        print_json(end)
    else:
        echo(_progress_words(end))
        for failed in end.failed_user_ids:
            echo(f"  {failed.user_id}: {failed.error}", err=True)
        if end.status.value == "completed":
            echo(f"What is new is pending. `reflexio upgrade {what}` puts it into force.", err=True)
    if end.status.value != "completed" or end.failed_users:
        raise typer.Exit(FAILED)


def _progress_words(status: "OperationStatusInfo") -> str:
    learned = status.stats.get("total_generated")
    parts = [
        f"{status.status.value.replace('_', ' ')}, {counted(status.processed_users, 'user')} of {status.total_users}",
        *([f"{status.failed_users} failed"] if status.failed_users else []),
        *([f"{learned} learned"] if learned is not None else []),
        *([status.error_message] if status.error_message else []),
    ]
    return ", ".join(parts)


def _end(response: Any, *, as_json: bool) -> None:
    """Prints what changed. Exit code 1 when there was nothing to change."""
    print_response(response, response.message, as_json=as_json)
    if not response.success:
        raise typer.Exit(FAILED)
