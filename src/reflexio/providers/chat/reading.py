"""Reads the answer to a question out of what a model wrote: leniently about its wrapping, strictly about its content.

Models put JSON between words and code fences, think aloud before it, encode it twice, wrap it once more, spread it over
several calls, or are cut off in its middle. What is found is validated by the caller against the schema.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

DEEPEST_WRAPPING = 4
MOST_BEGINNINGS = 200
"""Places in one text at which JSON may begin; a text with more braces holds no answer."""
END_OF_THOUGHT = re.compile(r"</think(?:ing)?>|</thought>|<\|end_of_thought\|>", re.IGNORECASE)
TRAILING_COMMA = re.compile(r",(\s*[}\]])")

_decoder = json.JSONDecoder(strict=False)
Json = dict[str, Any]


@dataclass(frozen=True)
class Fields:
    """The names of a schema's fields; those of lists; and those that may hold a text."""

    names: frozenset[str]
    lists: frozenset[str]
    texts: frozenset[str]

    @classmethod
    def of(cls, schema: type[BaseModel]) -> "Fields":
        properties = schema.model_json_schema()["properties"]

        def typed(kind: str) -> frozenset[str]:
            return frozenset(name for name, value in properties.items() if value.get("type") == kind)

        return cls(frozenset(properties), typed("array"), typed("string"))


@dataclass(frozen=True)
class ReadAnswer:
    """The fields that were found, by name. `is_cut` when the text ended before its JSON did."""

    values: Json = field(default_factory=dict)
    is_cut: bool = False

    @property
    def is_empty(self) -> bool:
        return not self.values


def read_answer(texts: Iterable[str], fields: Fields) -> ReadAnswer:
    """The fields in one or more texts, such as the arguments of several calls; they are merged."""
    found, is_cut = list[Json](), False
    for text in texts:
        read = _read(text, fields)
        is_cut = is_cut or read.is_cut
        found += [read.values] if read.values else []
    return ReadAnswer(merged(found, fields), is_cut)


def merged(answers: Sequence[Json], fields: Fields) -> Json:
    """One answer: lists are joined, without repetitions; of other values the first counts."""
    whole: Json = {}
    for answer in answers:
        for name, value in answer.items():
            if name in fields.lists and isinstance(whole.get(name), list) and isinstance(value, list):
                whole[name] = [*whole[name], *(entry for entry in value if entry not in whole[name])]
            elif whole.get(name) is None:
                whole[name] = value
    return whole


def _read(text: str, fields: Fields) -> ReadAnswer:
    *_, after_thought = END_OF_THOUGHT.split(text)
    candidates = [after_thought] if after_thought == text else [after_thought, text]
    for candidate in candidates:
        for spelling in (candidate, TRAILING_COMMA.sub(r"\1", candidate)):
            best = _best(list(_values(spelling)), fields)
            if best is not None:
                return ReadAnswer(_tidied(best, fields))
    for candidate in candidates:
        if (begun := _complete_part(candidate)) is not None:
            best = _best([begun], fields)
            return ReadAnswer(_tidied(best, fields) if best else {}, is_cut=True)
    return ReadAnswer()


def _values(text: str) -> Iterator[Any]:
    """Every JSON object in a text, the outermost ones; and a text that is a JSON string."""
    if text.lstrip().startswith('"'):
        yield from _decoded(text.lstrip(), 0)
    place = 0
    for _ in range(MOST_BEGINNINGS):
        place = text.find("{", place)
        if place < 0:
            return
        for value, end in _decoded_with_end(text, place):
            yield value
            place = end - 1
        place += 1


def _decoded(text: str, place: int) -> Iterator[Any]:
    for value, _ in _decoded_with_end(text, place):
        yield value


def _decoded_with_end(text: str, place: int) -> Iterator[tuple[Any, int]]:
    try:
        yield _decoder.raw_decode(text, place)
    except (ValueError, RecursionError):
        return


def _best(values: Iterable[Any], fields: Fields) -> Json | None:
    """The object that has most of the fields; of equal ones the outermost."""
    best, most = None, 0
    level = list(values)
    for _ in range(DEEPEST_WRAPPING):
        objects = [value for value in level if isinstance(value, dict)]
        for candidate in objects:
            count = len(fields.names & candidate.keys())
            if count > most:
                best, most = candidate, count
        if best is not None:
            return best
        level = [inner for value in level for inner in _inner(value)]
    return None


def _inner(value: Any) -> Iterator[Any]:
    match value:
        case dict():
            yield from value.values()
        case list():
            yield from value
        case str() if "{" in value:
            yield from _values(value)


def _tidied(answer: Json, fields: Fields) -> Json:
    """Only the fields of the schema, with lists that were written as strings read, and text that can be stored."""
    return {
        name: _clean(_unquoted(value, name in fields.texts)) for name, value in answer.items() if name in fields.names
    }


def _unquoted(value: Any, is_text: bool) -> Any:
    if is_text:
        return value
    if isinstance(value, list):
        return [_unquoted(entry, is_text=False) if _is_object(entry) else entry for entry in value]
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        return next(_decoded(value.strip(), 0), value)
    return value


def _is_object(value: Any) -> bool:
    return isinstance(value, str) and value.lstrip().startswith("{")


def _clean(value: Any) -> Any:
    """Half of a surrogate pair cannot be stored or sent: it becomes a question mark."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case list():
            return [_clean(entry) for entry in value]
        case dict():
            return {_clean(key): _clean(entry) for key, entry in value.items()}
        case _:
            return value


def _complete_part(text: str) -> Json | None:
    """The object that a text begins and does not end, up to the last complete entry of a list; None without one.

    An entry that was cut is left out: half of an instruction may say the opposite of the whole.
    """
    begin = text.find("{")
    if begin < 0:
        return None
    kept, closers = _last_entry(text, begin)
    if closers is None:
        return None
    try:
        value = json.loads(text[begin:kept] + closers, strict=False) if kept > begin else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _last_entry(text: str, begin: int) -> tuple[int, str | None]:
    """Where the last complete entry of an outer list ends, and what closes the text there; None if it is complete."""
    open_brackets: list[str] = []
    kept, closers = begin, ""
    is_string = is_escaped = False
    for place in range(begin, len(text)):
        character = text[place]
        if is_string:
            is_string, is_escaped = is_escaped or character != '"', character == "\\" and not is_escaped
        elif character == '"':
            is_string = True
        elif character in "{[":
            open_brackets.append("}" if character == "{" else "]")
        elif character in "}]":
            if not open_brackets or open_brackets.pop() != character:
                return kept, closers
            if not open_brackets:
                return kept, None
            lists = open_brackets.count("]")
            if (lists == 1 and open_brackets[-1] == "]") or (lists == 0 and character == "]"):
                # Behind an entry of an outer list, or behind that list.
                kept, closers = place + 1, "".join(reversed(open_brackets))
    return kept, closers
