"""Completes the OpenAPI document: what each field means, and bodies and values to try.

The meanings are in `words.toml`, the values in `samples.toml`. In both, a table belongs to one model or route and wins
over "everywhere". `make check` reports names without a meaning; a test sends every body to a server.
"""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
WORDS = FOLDER / "words.toml"
SAMPLES = FOLDER / "samples.toml"
LINK = re.compile(r"\[([^\[\]]+)\]\([^)]+\)")
METHODS = ("get", "post", "put", "patch", "delete")

Json = dict[str, Any]
Tables = dict[str, dict[str, Any]]


@cache
def read_tables(path: Path) -> Tables:
    return tomllib.loads(path.read_text())


def look_up(tables: Tables, place: str, name: str) -> Any:
    """The entry of a name in its place, else everywhere; None when there is none."""
    return tables.get(place, {}).get(name, tables.get("everywhere", {}).get(name))


def complete(document: Json) -> None:
    """Adds descriptions of fields and parameters, and an example to each parameter and request body."""
    schemas = document["components"]["schemas"]
    for name, schema in schemas.items():
        for field, part in schema.get("properties", {}).items():
            _describe(part, name, field)
    for path, operations in document["paths"].items():
        route = path.rpartition("/")[2]
        for method in METHODS:
            if operation := operations.get(method):
                _complete_operation(operation, route, schemas)


def _complete_operation(operation: Json, route: str, schemas: Json) -> None:
    for parameter in operation.get("parameters", []):
        _describe(parameter, route, parameter["name"])
        sample = look_up(read_tables(SAMPLES), route, parameter["name"])
        if parameter.get("required") and sample is not None:
            parameter["example"] = sample
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body is not None:
        body["example"] = sample_body(body["schema"], route, schemas)


def _describe(part: Json, place: str, name: str) -> None:
    meaning = look_up(read_tables(WORDS), place, name)
    if meaning and "$ref" not in part:  # what a reference says is said by its model
        part.setdefault("description", plain(meaning))


def plain(meaning: str) -> str:
    """A meaning without its links, which lead to pages that a reader of the document may not have."""
    return LINK.sub(r"\1", meaning)


def sample_body(schema: Json, place: str, schemas: Json) -> Any:
    """A realistic value for a schema: its required fields, and those that its own table of samples names."""
    if "$ref" in schema:
        place = schema["$ref"].rpartition("/")[2]
        return sample_body(schemas[place], place, schemas)
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "array":
        return [sample_body(schema["items"], place, schemas)]
    samples = read_tables(SAMPLES)
    properties = schema.get("properties", {})
    own = samples.get(place, {})
    if not properties:
        return dict(own)
    names = [name for name in properties if name in schema.get("required", []) or name in own]
    return {name: _sample_field(properties[name], place, name, schemas) for name in names}


def _sample_field(schema: Json, place: str, name: str, schemas: Json) -> Any:
    sample = look_up(read_tables(SAMPLES), place, name)
    return sample_body(schema, place, schemas) if sample is None else sample
