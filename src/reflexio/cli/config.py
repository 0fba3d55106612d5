"""`reflexio config`: the learning settings of an organisation: show, set, edit, diff."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reflexio.cli.exit_codes import WRONG_COMMAND, fail
from reflexio.cli.options import AsJson, Url, connect, is_terminal
from reflexio.cli.output import LONGEST_CELL, heading, print_fields, print_json, print_response, print_table
from reflexio.cli.terminal import echo

if TYPE_CHECKING:
    from reflexio.client.sync import ReflexioClient

app = typer.Typer(help="The learning settings: show, set, edit, diff.", no_args_is_help=True)
Document = dict[str, Any]
ABSENT = object()


@app.command(epilog="Example: reflexio config show llm_config")
def show(
    field: Annotated[str, typer.Argument(help="Only this setting, with dots below it: llm_config.api_base.")] = "",
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Show the settings that are in force. Secrets are masked."""
    with connect(url) as client:
        document = _document(client)
    value = _at(document, field) if field else document
    if as_json or isinstance(value, list) or (field and isinstance(value, dict)):
        print_json(value)
    elif isinstance(value, dict):
        _print_settings(value)
    else:
        echo(_written(value))


@app.command("set", epilog="Example: reflexio config set window_size=20 llm_config.structured_output=prompt")
def set_fields(
    settings: Annotated[list[str], typer.Argument(help="SETTING=VALUE; the value as JSON, or as plain text.")],
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Change settings, all of them or none. `null` clears one. The server refuses what is not valid."""
    with connect(url) as client:
        before = _document(client)
        after = json.loads(json.dumps(before))
        for setting in settings:
            name, sign, value = setting.partition("=")
            if not sign:
                fail(f"{setting!r} is no SETTING=VALUE.", WRONG_COMMAND)
            _put(after, name.strip(), _value(value))
        _store(client, before, after, as_json=as_json)


@app.command(epilog="Example: reflexio config edit")
def edit(url: Url = "") -> None:
    """Change the settings in your editor ($VISUAL or $EDITOR). What the server refuses can be corrected."""
    from reflexio.errors import InvalidRequest

    if not is_terminal():
        fail("An editor needs a terminal; `reflexio config set` does not.", WRONG_COMMAND)
    with connect(url) as client, tempfile.TemporaryDirectory(prefix="reflexio-config-") as folder:
        before = _document(client)
        path = Path(folder) / "config.json"
        path.write_text(json.dumps(before, indent=2), encoding="utf-8")
        while True:
            after = _edited(path)
            try:
                if after is not None:
                    _store(client, before, after, as_json=False)
                    return
            except InvalidRequest as error:
                problems = [f"{'.'.join(map(str, each.get('loc', ())))}: {each.get('msg')}" for each in error.errors]
                echo("; ".join([str(error), *problems]), err=True)
            if not typer.confirm("Edit it again?", default=True):
                fail("Nothing was changed.")


@app.command(epilog="Example: reflexio config diff staging.json")
def diff(
    file: Annotated[Path | None, typer.Argument(help="Compare with this JSON; by default with the defaults.")] = None,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Show which settings differ from the defaults, or from a file that `config show --json` wrote.

    In a pipe a line has: setting, its value in the file or by default, its value on the server.
    """
    with connect(url) as client:
        document = _document(client)
    if file:
        other = _loaded(file)
    else:
        from reflexio.models.config import Config

        other = Config().model_dump(mode="json")
    differences = list(_differences(other, document))
    if as_json:
        print_json([{"setting": name, "from": before, "to": after} for name, before, after in differences])
        return
    _print_differences(differences, file.name if file else "default")


def _print_settings(document: Document) -> None:
    written = [(name, _written(part)) for name, part in document.items()]
    if sys.stdout.isatty():
        print_fields((name, _shortened(text)) for name, text in written)
    else:
        print_table(("setting", "value"), written)


def _print_differences(differences: list[tuple[str, Any, Any]], other: str) -> None:
    if not sys.stdout.isatty():
        print_table((), ((name, _written(before), _written(after)) for name, before, after in differences))
    for name, before, after in differences if sys.stdout.isatty() else ():
        heading(name)
        print_fields(((f"  {other}", _shortened(_written(before))), ("  here", _shortened(_written(after)))))
    if not differences:
        echo("They are the same.", err=True)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"


def _document(client: "ReflexioClient") -> Document:
    return client.get_config().model_dump(mode="json")


def _at(document: Any, path: str) -> Any:
    value = document
    for part in path.split("."):
        if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            fail(f"There is no setting {path!r}; `reflexio config show` lists them.")
    return value


def _put(document: Document, path: str, value: Any) -> None:
    """Sets the value at a path. Below an unset part, the parts on the way are made."""
    *way, last = path.split(".")
    place: Any = document
    if (way or [last])[0] not in document:
        fail(f"There is no setting {path!r}; `reflexio config show` lists them.")
    for part in way:
        if isinstance(place, list):
            place = _at(place, part)
            continue
        if place.get(part) is None:
            place[part] = {}
        place = place[part]
        if not isinstance(place, dict | list):
            fail(f"{part!r} in {path!r} has no settings below it.")
    if isinstance(place, list):
        _at(place, last)
        place[int(last)] = value
    else:
        place[last] = value


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _store(client: "ReflexioClient", before: Document, after: Document, *, as_json: bool) -> None:
    """Sends the settings that changed, whole: the others may have been changed by somebody else meanwhile."""
    if unknown := sorted(set(after) - set(before)):
        fail(f"There is no setting {unknown[0]!r}; `reflexio config show` lists them.")
    changes = {name: after.get(name) for name in before if after.get(name, ABSENT) != before[name]}
    if not changes:
        echo("Nothing is different: nothing was changed.", err=True)
        return
    response = client.update_config(changes)
    print_response(response, response.msg, as_json=as_json)


def _edited(path: Path) -> Document | None:
    """What the file holds after the editor was closed; None, with a message, when it is no JSON object."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        subprocess.run([*shlex.split(editor), str(path)], check=True)  # noqa: S603  the person's own editor
    except FileNotFoundError:
        fail(f"There is no editor {editor!r}: set EDITOR.")
    except subprocess.CalledProcessError as error:
        fail(f"The editor ended with code {error.returncode}; nothing was changed.")
    try:
        return _loaded(path)
    except ValueError as error:
        echo(f"That is not valid JSON: {error}", err=True)
        return None


def _loaded(path: Path) -> Document:
    document = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(document, dict):
        fail(f"{path} holds no JSON object.")
    return document


def _differences(other: Any, document: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two documents differ, as deep as both have objects."""
    if isinstance(other, dict) and isinstance(document, dict):
        for name in {**other, **document}:
            place = f"{path}.{name}" if path else name
            yield from _differences(other.get(name), document.get(name), place)
    elif other != document:
        yield path, other, document


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
