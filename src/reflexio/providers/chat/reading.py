"""Reads the answer to a question out of what a model wrote: leniently about its wrapping, strictly about its content.

Models put JSON between words and code fences, think aloud before it, encode it twice, wrap it once more, spread it over
several calls, write it nearly right, or are cut off in its middle. What is found is validated by the caller against the
schema.
"""

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from reflexio.providers.chat.fields import Fields, Json, decode_strictly, loose_decoder

DEEPEST_WRAPPING = 4
DEEPEST_LIST = 10
"""Brackets around the lists of an answer that was cut off."""
MOST_BEGINNINGS = 200
"""Places in one text at which JSON may begin; a text with more braces holds no answer."""
END_OF_THOUGHT = re.compile(
    r"</(?:think(?:ing)?|thoughts?|reasoning|reflection|analysis|scratchpad|seed:think)>|\[/THINK\]|◁/think▷"
    r"|<\|(?:end_of_thought|END_THINKING|/think)\|>|<\|channel\|>(?:final|commentary)[^<]{0,80}"
    r"(?:<\|constrain\|>\w{1,20})?<\|message\|>",
    re.IGNORECASE,
)
MARKUP = re.compile(r"<[^<>]{1,80}>|```\w{0,20}|~~~\w{0,20}|\[/?[A-Z_]{3,20}\]")
"""Tags, code fences and control words, which join the parts of one answer; words between them part it from a draft."""
END_OF_CALL = re.compile(r"</(?:tool_call|function|invoke)>")
BETWEEN = r"[\"'”*`]{0,3}(?:\s|[:=>*]|</?arg_\w{1,9}>|```\w{0,20}){1,40}"
"""Between the name of a field and its value, where they stand outside of JSON."""

Decode = Callable[[str, int], tuple[Any, int] | None]


@dataclass(frozen=True)
class ReadAnswer:
    """The fields that were found, by name. `is_cut` when the text ended before its JSON did; `lacks_end` when what
    stands there is complete, and only a limit of the output would mean that more was to come."""

    values: Json = field(default_factory=dict)
    is_cut: bool = False
    lacks_end: bool = False

    @property
    def is_empty(self) -> bool:
        return not self.values


def read_answer(texts: Iterable[str], fields: Fields) -> ReadAnswer:
    """The fields in one or more texts, such as the arguments of several calls; they are merged."""
    reads = [_read(text, fields) for text in texts]
    values = merged([read.values for read in reads if read.values], fields)
    return ReadAnswer(values, any(read.is_cut for read in reads), any(read.lacks_end for read in reads))


def merged(answers: Sequence[Json], fields: Fields) -> Json:
    """One answer: lists are joined, without repetitions; of other values the first counts."""
    whole: Json = {}
    for answer in answers:
        for name, value in answer.items():
            before = whole.get(name)
            if name in fields.lists and isinstance(before, list) and isinstance(value, list):
                whole[name] = [*before, *(entry for entry in value if entry not in before)]
            elif before is None or (name in fields.lists and isinstance(value, list)):
                whole[name] = value
    return whole


def _read(text: str, fields: Fields) -> ReadAnswer:
    """What stands behind the thoughts counts; the thoughts only where nothing does."""
    *_, after_thought = END_OF_THOUGHT.split(text)
    for candidate in dict.fromkeys((after_thought, text)):
        plain = [html.unescape(candidate)] if "&quot;" in candidate else []
        for spelling in (candidate, *plain):
            read = _read_spelling(spelling, fields)
            if read.values or read.is_cut:
                return ReadAnswer(fields.fitted(read.values), read.is_cut, read.lacks_end)
    return ReadAnswer()


def _read_spelling(text: str, fields: Fields) -> ReadAnswer:
    for decode in (decode_strictly, loose_decoder(text)):
        if answer := _answer(text, _objects(text, decode), fields):
            return ReadAnswer(answer)
    cut = _complete_part(text)
    if cut is not None:
        return ReadAnswer(_unwrapped(cut.values, fields), cut.is_cut, cut.lacks_end)
    named = merged([_named_values(part, fields) for part in END_OF_CALL.split(text)], fields)
    return ReadAnswer(named, lacks_end=True)


def _objects(text: str, decode: Decode) -> list[tuple[int, int, Any]]:
    """Every object in a text, the outermost ones, and a text that is a JSON string; each with its beginning and end."""
    values = list[tuple[int, int, Any]]()
    begin = len(text) - len(text.lstrip())
    if text.startswith('"', begin) and (decoded := decode(text, begin)):
        values.append((begin, decoded[1], decoded[0]))
    place = 0
    for _ in range(MOST_BEGINNINGS):
        place = text.find("{", place)
        if place < 0:
            break
        decoded = decode(text, place)
        if decoded:
            values.append((place, decoded[1], decoded[0]))
        place = decoded[1] if decoded else place + 1
    return values


def _answer(text: str, objects: Iterable[tuple[int, int, Any]], fields: Fields) -> Json:
    """Objects side by side are one answer. Of those that words part, the last one of the most complete ones counts,
    and what has none of its fields is added to it."""
    groups, last_end = list[list[Json]](), -1
    for begin, end, value in objects:
        if not (found := _unwrapped(value, fields)):
            continue
        is_beside = 0 <= last_end <= begin and not re.search(r"\w", MARKUP.sub("", text[last_end:begin]))
        if is_beside:
            groups[-1].append(found)
        else:
            groups.append([found])
        last_end = end
    answers = [merged(group, fields) for group in groups]
    best = max(reversed(answers), key=len, default={})
    return merged([best, *(answer for answer in reversed(answers) if best.keys().isdisjoint(answer))], fields)


def _unwrapped(value: Any, fields: Fields) -> Json:
    """The fields in a value, on its outermost level that has some. Several objects there are several calls."""
    level = [value]
    for _ in range(DEEPEST_WRAPPING + 1):
        found = [known for inner in level if isinstance(inner, dict) and (known := fields.known(inner))]
        if found:
            return merged(sorted(found, key=len, reverse=True), fields)
        level = [inner for wrapping in level for inner in _inner(wrapping)]
    return {}


def _inner(value: Any) -> Iterator[Any]:
    match value:
        case dict():
            yield from value.values()
        case list():
            yield from value
        case str() if "{" in value:
            objects = _objects(value, decode_strictly) or _objects(value, loose_decoder(value))
            yield from (inner for _, _, inner in objects)


def _named_values(text: str, fields: Fields) -> Json:
    """Fields that stand by name outside of JSON: as tags, as arguments of a function, under headings."""
    found: Json = {}
    loosely = loose_decoder(text)
    for name in fields.by_letters.values():
        pattern = re.compile(rf"(?<![\w-]){name.replace('_', '[_ -]?')}{BETWEEN}(?=[^\s])", re.IGNORECASE)
        for place in [match.end() for match in pattern.finditer(text)][-MOST_BEGINNINGS:]:
            decoded = decode_strictly(text, place) or loosely(text, place)
            if decoded and (isinstance(decoded[0], list | dict) or name not in fields.lists):
                found[name] = decoded[0]
            elif text[place - 1] == ">" and name in fields.texts:
                found[name] = text[place:].partition("</")[0].strip()
    return found if not fields.lists or fields.lists & found.keys() else {}


def _complete_part(text: str) -> ReadAnswer | None:
    """The object that a text begins and does not end, up to the last complete entry of a list; None without one.

    An entry that was cut is left out: half of an instruction may say the opposite of the whole.
    """
    begin = text.find("{")
    if begin < 0:
        return None
    kept, closers = _last_entry(text, begin)
    if closers is None:
        return None
    part = text[begin:kept] + closers
    decoded = (decode_strictly(part, 0) or loose_decoder(part)(part, 0)) if kept > begin else None
    values = decoded[0] if decoded and isinstance(decoded[0], dict) else {}
    lacks_end = bool(values) and not text[kept:].strip(" \n\t\r]}`")
    return ReadAnswer(values, is_cut=not lacks_end, lacks_end=lacks_end)


def _last_entry(text: str, begin: int) -> tuple[int, str | None]:
    """Where the last complete entry of an outer list ends, and what closes the text there; None if it is complete."""
    open_brackets: list[str] = []
    kept, closers, lists = begin, "", 0
    is_string = is_escaped = False
    for place in range(begin, len(text)):
        character = text[place]
        if is_string:
            is_string, is_escaped = is_escaped or character != '"', character == "\\" and not is_escaped
        elif character == '"':
            is_string = True
        elif character in "{[":
            open_brackets.append("}" if character == "{" else "]")
            lists += character == "["
        elif character in "}]":
            if not open_brackets or open_brackets.pop() != character:
                return kept, closers
            if not open_brackets:
                return kept, None
            lists -= character == "]"
            is_entry = (lists == 1 and open_brackets[-1] == "]") or (lists == 0 and character == "]")
            if is_entry and len(open_brackets) <= DEEPEST_LIST:
                # Behind an entry of an outer list, or behind that list.
                kept, closers = place + 1, "".join(reversed(open_brackets))
    return kept, closers
