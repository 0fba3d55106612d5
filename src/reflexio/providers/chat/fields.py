"""The fields that a schema asks for, and how what a model wrote is fitted to them.

Models write field names in another case, one entry without its list, entries by number, and lists as strings.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from reflexio.providers.chat.loose_json import LooseDecoder, Unreadable

Json = dict[str, Any]
DEEPEST_VALUE = 20
_NO_LETTERS = re.compile(r"[\W_]+")
_decoder = json.JSONDecoder(strict=False, parse_constant=lambda _: None)


@dataclass(frozen=True)
class Fields:
    """A schema's fields by the letters of their names; the names of those that are lists, and of those with text."""

    by_letters: Mapping[str, str]
    lists: frozenset[str]
    texts: frozenset[str]
    schema: Json

    @classmethod
    def of(cls, schema: type[BaseModel]) -> "Fields":
        whole = schema.model_json_schema()
        properties = whole["properties"]

        def typed(kind: str) -> frozenset[str]:
            return frozenset(name for name, value in properties.items() if value.get("type") == kind)

        return cls({_letters(name): name for name in properties}, typed("array"), typed("string"), whole)

    def known(self, value: Json) -> Json:
        """The members of an object that are fields, by their names."""
        return _named(value, self.by_letters, keeps_others=False)

    def fitted(self, answer: Json) -> Json:
        """An answer in the shape of the schema, as far as it means the same, and without what cannot be stored."""
        fitted = _fitted(answer, self.schema, self.schema.get("$defs", {}))
        return {name: _clean(value) for name, value in self.known(fitted).items()}


def decode_strictly(text: str, place: int) -> tuple[Any, int] | None:
    """The JSON at a place and where it ends."""
    try:
        return _decoder.raw_decode(text, place)
    except (ValueError, RecursionError):
        return None


def loose_decoder(text: str) -> Callable[[str, int], tuple[Any, int] | None]:
    """Decodes what is nearly JSON, out of this one text."""
    decoder = LooseDecoder(text)

    def decode(_: str, place: int) -> tuple[Any, int] | None:
        try:
            return decoder.decode(place)
        except Unreadable:
            return None

    return decode


def _letters(name: str) -> str:
    return _NO_LETTERS.sub("", name).casefold()


def _named(value: Json, names: Mapping[str, str], *, keeps_others: bool) -> Json:
    named: Json = {name: value[name] for name in names.values() if name in value}
    for key, member in value.items():
        name = names.get(_letters(key), key if keeps_others else "")
        if name and name not in named:
            named[name] = member
    return named


def _fitted(value: Any, schema: Json, definitions: Mapping[str, Json]) -> Any:
    schema = _resolved(value, schema, definitions)
    if isinstance(value, str) and schema.get("type") in ("array", "object") and value.lstrip()[:1] in ("[", "{"):
        text = value.strip()
        decoded = decode_strictly(text, 0) or loose_decoder(text)(text, 0)
        value = decoded[0] if decoded else value
    match schema.get("type"):
        case "object" if isinstance(value, dict) and "properties" in schema:
            properties = schema["properties"]
            members = _named(value, {_letters(name): name for name in properties}, keeps_others=True)
            return {name: _fitted(member, properties.get(name, {}), definitions) for name, member in members.items()}
        case "array" if isinstance(value, list | dict):
            items = schema.get("items", {})
            entries = value if isinstance(value, list) else _entries(value, items, definitions)
            return [_fitted(entry, items, definitions) for entry in entries] if entries is not None else value
        case _:
            return value


def _resolved(value: Any, schema: Json, definitions: Mapping[str, Json]) -> Json:
    if "$ref" in schema:
        return definitions.get(schema["$ref"].rpartition("/")[2], {})
    options = [_resolved(value, option, definitions) for option in schema.get("anyOf", ())]
    kind = "object" if isinstance(value, dict) else "array" if isinstance(value, list) else "string"
    objects = [option for option in options if option.get("type") == "object"]
    fitting = [option for option in options if option.get("type") == kind]
    return next(iter(fitting or objects), schema)


def _entries(value: Json, items: Json, definitions: Mapping[str, Json]) -> list[Any] | None:
    """The entries of an object that numbers them, or the one entry that stands without its list; None for others."""
    entry = _resolved(value, items, definitions)
    letters = {_letters(name) for name in entry.get("properties", ())}

    def is_entry(candidate: Any, wanted: set[str]) -> bool:
        return isinstance(candidate, dict) and bool(wanted) and wanted <= {_letters(key) for key in candidate}

    if is_entry(value, {_letters(name) for name in entry.get("required", ())}):
        return [value]
    members = list(value.values())
    are_entries = all(isinstance(member, dict) and letters & {_letters(key) for key in member} for member in members)
    return members if members and are_entries else None


def _clean(value: Any, depth: int = 0) -> Any:
    """Without what cannot be stored or sent: halves of surrogate pairs, endless numbers, and bottomless nesting."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case float() if not math.isfinite(value):
            return None
        case list() | dict() if depth == DEEPEST_VALUE:
            return None
        case list():
            return [_clean(entry, depth + 1) for entry in value]
        case dict():
            return {_clean(key): _clean(entry, depth + 1) for key, entry in value.items()}
        case _:
            return value
