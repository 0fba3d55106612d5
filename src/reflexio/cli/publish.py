"""`reflexio publish`: turns of a conversation from the command line, from JSON lines, or from standard input."""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from reflexio.cli.exit_codes import FAILED, INTERRUPTED, WRONG_COMMAND, fail
from reflexio.cli.options import AsJson, Url, connect
from reflexio.cli.output import counted, plain, print_fields, progress
from reflexio.cli.terminal import echo

if TYPE_CHECKING:
    from reflexio.client.sync import ReflexioClient
    from reflexio.models.interaction import PublishResponse

ROLES = {
    "user": "User",
    "customer": "User",
    "human": "User",
    "agent": "Agent",
    "assistant": "Agent",
    "bot": "Agent",
    "system": "System",
    "expert": "Expert",
}
"""Words in front of a turn that say who speaks."""
MOST_TURNS = 1000
"""Turns that one publish may have."""
Turn = dict[str, Any]


@dataclass(frozen=True)
class Publish:
    """One call to the server, and the last line of the input that it came from; 0 for turns of the command line."""

    fields: dict[str, Any]
    line: int = 0


def publish(
    turns: Annotated[
        list[str] | None,
        typer.Argument(help='The turns: "User: …", "Agent: …". Without such a word it is a turn of the user.'),
    ] = None,
    user: Annotated[str | None, typer.Option("--user", help="Whose conversation it is.")] = None,
    file: Annotated[
        str | None, typer.Option(help="Read from this file, or - for standard input: JSON lines, or one turn a line.")
    ] = None,
    from_line: Annotated[int, typer.Option(help="Begin at this line of the input.", min=1)] = 1,
    session: Annotated[str | None, typer.Option(help="The conversation; by default a new one.")] = None,
    agent_version: Annotated[str, typer.Option(help="The agent that answered.")] = "",
    source: Annotated[str, typer.Option(help="Where it comes from, such as chat or phone.")] = "",
    finish: Annotated[bool, typer.Option("--finish", help="The conversation is over: learn from it now.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is learned, and say what was.")] = False,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Send conversations, from which the server learns.

    A JSON line is either a whole publish, as in the HTTP reference, with "user_id" and "interaction_data_list", or one
    turn with "role" and "content" for the conversation that the options name. Without turns and --file it reads
    standard input. When a line fails, those before it are stored, and the error says how to go on.
    """
    shared = {"user_id": user, "session_id": session, "agent_version": agent_version, "source": source}
    named = {name: value for name, value in shared.items() if value}
    if turns and file:
        fail("Give turns or --file, not both.", WRONG_COMMAND)
    if turns:
        publishes: Iterable[Publish] = [_of_turns([_spoken(turn) for turn in turns], named)]
    elif file is None and sys.stdin.isatty():
        fail('Give what was said: reflexio publish --user ann "User: …" "Agent: …"', WRONG_COMMAND)
    else:
        publishes = _read(file or "-", from_line, named)
    with connect(url) as client:
        _send(client, publishes, finish=finish, wait=wait, as_json=as_json)


def _of_turns(turns: list[Turn], named: dict[str, Any], line: int = 0) -> Publish:
    if "user_id" not in named:
        fail("Say whose conversation it is: --user.", WRONG_COMMAND)
    return Publish({**named, "interactions": turns}, line)


def _spoken(text: str) -> Turn:
    """A turn from its text. A first word that is no role belongs to what was said.

    >>> _spoken("Agent: Hello."), _spoken("Note: it is broken.")
    ({'role': 'Agent', 'content': 'Hello.'}, {'role': 'User', 'content': 'Note: it is broken.'})
    """
    word, colon, rest = text.partition(":")
    role = ROLES.get(word.strip().lower()) if colon else None
    return {"role": role, "content": rest.strip()} if role else {"role": "User", "content": text.strip()}


def _read(name: str, from_line: int, named: dict[str, Any]) -> Iterator[Publish]:
    """Publishes as their lines come: the input is never read as a whole, except for one conversation of turns."""
    turns: list[Turn] = []
    number = 0
    with _opened(name) as stream:
        for number, line in enumerate(stream, start=1):
            if number < from_line or not line.strip():
                continue
            parsed = _parsed(line, number)
            if "interaction_data_list" in parsed or "interactions" in parsed:
                if turns:
                    yield _of_turns(turns, named, number - 1)
                    turns = []
                yield _whole(parsed, named, number)
                continue
            turns.append(parsed)
            if len(turns) == MOST_TURNS:
                yield _of_turns(turns, named, number)
                turns = []
    if turns:
        yield _of_turns(turns, named, number)


@contextmanager
def _opened(name: str) -> Iterator[TextIO]:
    if name == "-":
        yield sys.stdin
        return
    with Path(name).open(encoding="utf-8-sig") as stream:
        yield stream


def _parsed(line: str, number: int) -> Turn:
    if not line.lstrip("\ufeff").lstrip().startswith("{"):
        return _spoken(line)
    try:
        parsed: Turn = json.loads(line.lstrip("\ufeff"))
    except ValueError as error:
        fail(f"Line {number} is not JSON: {error}. {_resume(number)}")
    return parsed


def _whole(parsed: dict[str, Any], named: dict[str, Any], number: int) -> Publish:
    turns = parsed.pop("interaction_data_list", None) or parsed.pop("interactions", [])
    fields = {**named, **parsed, "interactions": turns}
    if not fields.get("user_id"):
        fail(f'Line {number} has no "user_id": add it, or give --user. {_resume(number)}')
    return Publish(fields, number)


def _resume(number: int) -> str:
    return f"What is before it is stored; go on with --from-line {number}." if number > 1 else "Nothing was stored."


def _send(client: "ReflexioClient", publishes: Iterable[Publish], *, finish: bool, wait: bool, as_json: bool) -> None:
    from reflexio.errors import ReflexioError

    responses: list[PublishResponse] = []
    sent, line = 0, 0
    try:
        with progress("Publishing") as show:
            for item in publishes:
                turns = len(item.fields["interactions"])
                response = _publish(client, item, finish=finish, wait=wait)
                responses = [*responses[-9:], response] if not as_json else responses
                if as_json:
                    echo(json.dumps(plain(response)))
                sent, line = sent + turns, item.line
                show(sent, None, counted(sent, "turn"))
    except KeyboardInterrupt:
        fail(f"Interrupted. {_resume(line + 1)}" if line else "Interrupted.", INTERRUPTED)
    except (ReflexioError, TypeError) as error:
        if not line:
            raise
        fail(f"{error} {_resume(line + 1)}", FAILED)
    if not as_json:
        _print_result(responses, sent, wait=wait)


def _publish(client: "ReflexioClient", item: Publish, *, finish: bool, wait: bool) -> "PublishResponse":
    fields = dict(item.fields)
    user, turns = fields.pop("user_id"), fields.pop("interactions")
    known = {"idempotency_key", *_OPTIONAL}
    if unknown := sorted(set(fields) - known):
        fail(f"Line {item.line} has fields that a publish does not have: {', '.join(unknown)}. {_resume(item.line)}")
    return client.publish_interaction(
        user,
        turns,
        **{**fields, "wait_for_response": wait, "session_finished": finish or fields.get("session_finished", False)},
    )


_OPTIONAL = (
    "source",
    "agent_version",
    "session_id",
    "skip_aggregation",
    "force_extraction",
    "evaluation_only",
    "override_learning_stall",
    "retrieval_experiment_id",
    "retrieval_experiment_arm",
    "session_finished",
)


def _print_result(responses: "list[PublishResponse]", sent: int, *, wait: bool) -> None:
    if not responses:
        echo("There was nothing to publish.", err=True)
        return
    last = responses[-1]
    learned = (
        f"{counted(last.profiles_added or 0, 'new profile')}, {counted(last.playbooks_added or 0, 'new playbook')}, "
        f"{(last.profiles_updated or 0) + (last.playbooks_updated or 0)} changed"
    )
    print_fields(
        (
            ("stored", counted(sent, "turn")),
            ("session", last.session_id),
            ("request", last.request_id),
            ("learned", learned if wait and last.learning_status == "done" else None),
            ("learning", last.learning_status if last.learning_status != "done" else None),
            ("because", last.learning_reason if last.learning_status != "done" else None),
            ("redacted", ", ".join(f"{kind} {count}" for kind, count in (last.redacted or {}).items())),
            ("note", "; ".join(last.warnings)),
        )
    )
