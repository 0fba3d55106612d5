"""Writes the lower parts of `http.md`, `client.md` and `cli.md` in docs/reference; with --check only says what is old.

Structure, types, limits and defaults come from the OpenAPI document, the client's signatures and the commands,
sentences from docstrings, and what each name means from `src/reflexio/server/words.toml`, once for all places.
"""

import inspect
import json
import re
import sys
import tomllib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import typer.main
from pydantic import BaseModel

import reflexio
from reflexio.cli.app import app
from reflexio.client.aio import AsyncReflexioClient
from reflexio.client.aio.connection import Connection
from reflexio.server.api_document import WORDS, look_up, plain, read_tables
from reflexio.server.app import create_app
from reflexio.settings import Settings

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
MARK = "<!-- Below this line scripts/make_reference.py writes. Change the code or words.toml and run `make format`. -->"
ROOMS = {
    "health": "Open pages",
    "interactions": "Interactions",
    "learnings": "Learnings",
    "search": "Search and context",
    "configuration": "Configuration and state",
    "transfer": "Export and import",
    "operations": "Operations",
    "review": "Review",
    "optimisation": "Optimisation",
    "evaluation": "Evaluation",
    "mcp": "Model Context Protocol",
    "gateway": "OpenAI-compatible pass-through",
}
EXAMPLE = "Example: "
OF_FASTAPI = {"HTTPValidationError", "ValidationError"}
HUGE = 10**12

Schema = Mapping[str, Any]


class Words:
    """What names mean: in their place, else everywhere. Remembers what was asked for and not there."""

    def __init__(self, places: dict[str, dict[str, str]]) -> None:
        self._places = places
        self._unused = {(place, name) for place, names in places.items() for name in names}
        self._missing: dict[str, None] = {}

    def meaning(self, place: str, name: str) -> str:
        for where in (place, "everywhere"):
            if name in self._places.get(where, {}):
                self._unused.discard((where, name))
                return self._places[where][name]
        self._missing[f"{place}.{name} has no meaning"] = None
        return ""

    def complaints(self) -> list[str]:
        return [*self._missing, *(f"{place}.{name} is nowhere" for place, name in sorted(self._unused))]


class Http:
    """The routes and the shapes of the OpenAPI document."""

    def __init__(self, document: Schema, words: Words) -> None:
        self._paths = document["paths"]
        self._schemas: dict[str, Schema] = document["components"]["schemas"]
        self._words = words
        self.shapes = [name for name in self._schemas if name not in OF_FASTAPI and not self._values(name)]

    def page(self) -> Iterator[str]:
        """All routes by room, then all shapes. A route of a room that is not in ROOMS is a mistake."""
        tags = [tag for methods in self._paths.values() for each in methods.values() for tag in each.get("tags", ["?"])]
        if unknown := set(tags) - set(ROOMS):
            raise SystemExit(f"Name the rooms of these routes in ROOMS: {', '.join(sorted(unknown))}")
        for tag, title in ROOMS.items():
            yield f"## {title}"
            for path, methods in self._paths.items():
                for method, operation in methods.items():
                    if tag in operation["tags"]:
                        yield from self._route(f"{method.upper()} {path}", operation)
        sent = [name for name in self.shapes if self._is_sent(name)]
        for title, names in (
            ("Request models", sent),
            ("Response models", [each for each in self.shapes if each not in sent]),
        ):
            yield f"## {title}"
            for name in names:
                yield from self._shape(name)

    def _route(self, heading: str, operation: Schema) -> Iterator[str]:
        yield f"### {heading}"
        yield operation.get("description", "").strip()
        place = heading.rpartition("/")[2]
        if parameters := operation.get("parameters", []):
            yield table(
                ("parameter", "type", "default", "meaning"), [self._parameter(place, each) for each in parameters]
            )
        if security := operation["security"]:
            (scopes,) = security[0].values()
            yield f"Scope: `{scopes[0]}`." if scopes else "Scope: any."
        body = self._link(operation.get("requestBody", {}))
        answer = self._link(operation["responses"]["200"])
        said = [f"{title}: {link}." for title, link in (("Body", body), ("Response", answer)) if link]
        if said:
            yield " ".join(said)

    def _parameter(self, place: str, parameter: Schema) -> tuple[str, ...]:
        name, described = parameter["name"], parameter.get("description", "")
        is_from_words = described == plain(look_up(read_tables(WORDS), place, name) or "")
        meaning = self._words.meaning(place, name) if is_from_words else described
        return name, *self._typed(parameter["schema"], parameter.get("required", False)), meaning

    def _link(self, part: Schema) -> str:
        schema = part.get("content", {}).get("application/json", {}).get("schema", {})
        return self._type(schema) if "$ref" in schema else ""

    def _shape(self, name: str) -> Iterator[str]:
        schema = self._schemas[name]
        yield f"### {name}"
        yield schema.get("description", "")
        required = schema.get("required", [])
        rows = [
            (field, *self._typed(each, field in required), self._words.meaning(name, field))
            for field, each in schema["properties"].items()
        ]
        if self._is_sent(name):
            yield table(("field", "type", "default", "meaning"), rows)
        else:
            yield table(("field", "type", "meaning"), [(field, kind, said) for field, kind, _, said in rows])

    def _is_sent(self, name: str) -> bool:
        return self._schemas[name].get("additionalProperties") is False

    def _values(self, name: str) -> list[str]:
        return list(self._schemas[name].get("enum", []))

    def _typed(self, schema: Schema, required: bool) -> tuple[str, str]:
        return self._type(schema), "required" if required else _default(schema)

    def _type(self, schema: Schema) -> str:
        if "anyOf" in schema:
            return " or ".join(self._type(each) for each in schema["anyOf"] if each.get("type") != "null")
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return _one_of(self._values(name)) or f"[{name}](#{name.lower()})"
        if values := schema.get("enum") or ([schema["const"]] if "const" in schema else []):
            return _one_of(values)
        match schema.get("type"):
            case "array":
                return f"list of {self._type(schema['items'])}{_limits(schema, 'minItems', 'maxItems')}"
            case "string" if schema.get("format") == "date-time":
                return "ISO 8601"
            case "string":
                return f"string{_limits(schema, 'minLength', 'maxLength')}"
            case "integer" | "number" as kind:
                return f"{kind}{_limits(schema, 'minimum', 'maximum')}"
            case "object" if isinstance(inside := schema.get("additionalProperties"), dict):
                return f"object of {self._type(inside)}"
            case kind:
                return str(kind)


def _one_of(values: list[str]) -> str:
    return ", ".join(f"`{each}`" for each in values)


def _default(schema: Schema) -> str:
    if "default" in schema:
        return f"`{json.dumps(schema['default'])}`"
    if {"type": "null"} in schema.get("anyOf", []):
        return "`null`"
    match schema.get("type"):
        case "array":
            return "`[]`"
        case "object":
            return "`{}`"
        case _:
            return "its own defaults" if "$ref" in schema else "now"


def _limits(schema: Schema, low: str, high: str) -> str:
    least = schema.get(low, schema.get("exclusiveMinimum", -1) + 1 if low == "minimum" else 0)
    most = schema.get(high, HUGE)
    if most < HUGE:
        return f", {_number(least)} to {_number(most)}" if least else f", up to {_number(most)}"
    return f", at least {_number(least)}" if least else ""


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


class Client:
    """The page about the asynchronous client. The synchronous client has the same methods without `await`."""

    def __init__(self, shapes: list[str], words: Words) -> None:
        self._shapes = shapes
        self._words = words

    def page(self) -> Iterator[str]:
        yield "## Create a client"
        yield from self._section("ReflexioClient", Connection.__init__)
        yield from self._methods(Connection)
        yield from self._methods(AsyncReflexioClient)
        for topic in AsyncReflexioClient.__bases__:
            yield f"## {(topic.__doc__ or '').strip().rstrip('.')}"
            yield from self._methods(topic)
        yield "## Names in `reflexio`"
        yield table(("name", "what it is"), [(name, _first_line(getattr(reflexio, name))) for name in reflexio.__all__])

    def _methods(self, owner: type) -> Iterator[str]:
        for name, method in vars(owner).items():
            if not inspect.isfunction(method) or name.startswith("_"):
                continue
            if name.endswith("_async"):
                twin = name.removesuffix("_async")
                yield f"### {name}"
                yield f"[{twin}](#{twin}) under the name of published clients; it is awaited in both clients."
            else:
                yield from self._section(name, method)

    def _section(self, name: str, method: Any) -> Iterator[str]:
        yield f"### {name}"
        yield inspect.cleandoc(method.__doc__ or "")
        signature = inspect.signature(method, eval_str=True)
        if return_type := self._format_return(signature.return_annotation or NoneType):
            yield f"Returns {return_type}."
        rows = [
            (
                _format_name(parameter),
                self._type(parameter.annotation),
                _format_default(parameter),
                self._words.meaning(name, parameter.name),
            )
            for parameter in list(signature.parameters.values())[1:]
        ]
        if rows:
            yield table(("argument", "type", "default", "meaning"), rows)

    def _format_return(self, hint: Any) -> str:
        if get_origin(hint) is AsyncIterator:
            return f"an iterator over {self._type(get_args(hint)[0])}"
        types = [part for part in (get_args(hint) or (hint,)) if part is not NoneType]
        names = [self._type(part) for part in types]
        return " or ".join([*names, "`None`"] if NoneType in get_args(hint) else names)

    def _type(self, hint: Any) -> str:
        origin, inside = get_origin(hint), get_args(hint)
        if origin in (Union, UnionType):
            return " or ".join(dict.fromkeys(self._type(part) for part in inside if part is not NoneType))
        if origin is Literal:
            return _one_of(list(inside))
        if inside and "Callable" not in str(origin):
            return f"{origin.__name__} of {self._type(inside[-1] if origin is dict else inside[0])}"
        name = getattr(hint, "__name__", str(hint))
        if isinstance(hint, type) and issubclass(hint, BaseModel):
            return (
                f"[{name}](http.md#{name.lower()})" if name in self._shapes else f"[{name}](config.md#{name.lower()})"
            )
        return {"Any": "anything", "Callable": "function", "AsyncBaseTransport": "httpx transport"}.get(name, name)


def commands(command: Any, name: str) -> Iterator[str]:
    """The page about the command line: each command with its options and its example."""
    below = getattr(command, "commands", {})
    parameters = [each for each in command.params if "--help" not in each.opts]
    if parameters or not below:
        yield f"## {name}"
        yield command.help or ""
        if parameters:
            yield table(("option", "meaning"), [_option(each) for each in parameters])
        if (command.epilog or "").startswith(EXAMPLE):
            yield f"```sh\n{command.epilog.removeprefix(EXAMPLE)}\n```"
    for word, subcommand in below.items():
        yield from commands(subcommand, f"{name} {word}")


def _option(parameter: Any) -> tuple[str, str]:
    is_argument = parameter.param_type_name == "argument"
    default = None if callable(parameter.default) else parameter.default
    notes = [parameter.help or ""]
    if parameter.required:
        notes.append("Required.")
    elif default is True and getattr(parameter, "secondary_opts", None):
        notes.append(f"`{parameter.secondary_opts[0]}` turns it off.")
    elif default not in (None, False, "", []):
        notes.append(f"Default: `{default}`.")
    return parameter.name if is_argument else parameter.opts[0], " ".join(notes).replace("|", "\\|")


def _format_name(parameter: inspect.Parameter) -> str:
    return f"**{parameter.name}" if parameter.kind is parameter.VAR_KEYWORD else parameter.name


def _format_default(parameter: inspect.Parameter) -> str:
    if parameter.kind is parameter.VAR_KEYWORD:
        return "none"
    return "required" if parameter.default is parameter.empty else f"`{parameter.default!r}`".replace("'", '"')


def _first_line(value: Any) -> str:
    return re.split(r"(?<=\.)\s", inspect.cleandoc(value.__doc__ or ""))[0]


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, *((f"`{first}`", *rest) for first, *rest in rows)]
    top, *below = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([top, "|---" * len(head) + "|", *below])


def written(page: str, parts: Iterator[str]) -> str:
    """The page with everything below its mark replaced."""
    above, mark, _ = page.partition(MARK)
    if not mark:
        raise SystemExit(f"A page has no line {MARK!r}")
    return "\n\n".join([above.rstrip(), MARK, *(part for part in parts if part)]) + "\n"


def main(reference: Path = REFERENCE, words_file: Path = WORDS, *, check: bool) -> list[str]:
    """Writes the pages, or with `check` none; returns what is wrong."""
    words = Words(tomllib.loads(words_file.read_text()))
    http = Http(create_app(Settings()).openapi(), words)
    stale = []
    pages = {
        "http.md": http.page(),
        "client.md": Client(http.shapes, words).page(),
        "cli.md": commands(typer.main.get_command(app), "reflexio"),
    }
    for name, parts in pages.items():
        path = reference / name
        before = path.read_text()
        after = written(before, parts)
        if check and before != after:
            stale.append(f"docs/reference/{name} is not what the code says: run `make format`")
        elif not check:
            path.write_text(after)
    return [*words.complaints(), *stale]


if __name__ == "__main__":
    folders = [Path(each) for each in sys.argv[1:] if not each.startswith("--")]
    wrong = main(*folders, check="--check" in sys.argv[1:])
    sys.stderr.writelines(f"{line}\n" for line in wrong)
    sys.exit(bool(wrong))
