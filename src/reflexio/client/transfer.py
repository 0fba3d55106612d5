"""The file of an export: one JSON object a line. Rows are numbered by their places, so that it fits every database.

Learnings are counted from 1 in the order of the file, turns likewise. A row refers only to rows before it. To translate
between places and numbers of stored rows takes eight bytes for each learning and each turn, and nothing else is held.
"""

import json
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from reflexio.errors import InvalidRequest
from reflexio.models.learning import Kind
from reflexio.models.transfer import ImportCount, ImportedRow, ImportReport, ImportRowsResponse

FORMAT, VERSION = "reflexio-export", 1
PARTS = {"learning": "learnings", "request": "requests", "links": "links", "pool": "pools"}
"""What a line is, and the name of such rows in a call."""
MOST_ROWS, MOST_BYTES = 100, 2**20
"""Of one call of an import."""
REMEMBERED = 10_000
"""Learnings back to which a repetition is counted as a copy."""
Row = dict[str, Any]
Number = Callable[[int], int]
"""Translates a number; 0 for what is not there."""


class Places:
    """The places of exported rows by their numbers. Rows come in the order of their numbers, or nearly so."""

    def __init__(self) -> None:
        self._numbers = array("q")
        self._sorted: list[int] | None = None

    def add(self, number: int) -> None:
        self._numbers.append(number)
        self._sorted = None

    def of(self, number: int) -> int:
        """The place of a row; 0 when it is not in the file."""
        if self._sorted is None:
            self._sort()
        order = self._sorted or range(len(self._numbers))
        at = bisect_left(order, number, key=self._numbers.__getitem__)
        return order[at] + 1 if at < len(order) and self._numbers[order[at]] == number else 0

    def _sort(self) -> None:
        numbers = self._numbers
        is_sorted = all(numbers[at] < numbers[at + 1] for at in range(len(numbers) - 1))
        self._sorted = [] if is_sorted else sorted(range(len(numbers)), key=numbers.__getitem__)


class ExportFile:
    """Makes the lines of a file from the pages of a server."""

    def __init__(self, counts: dict[str, int]) -> None:
        self._header = {"type": "header", "format": FORMAT, "version": VERSION, "counts": counts}
        self._learnings, self._turns = Places(), Places()
        self._counts: dict[str, int] = {"learnings": 0, "requests": 0, "turns": 0}

    def header(self) -> str:
        return _line(self._header)

    def end(self) -> str:
        """The last line, by which a file is known to be whole."""
        return _line({"type": "end", "counts": self._counts})

    def lines(self, part: str, rows: Iterable[Row]) -> Iterator[str]:
        write = {
            "configuration": lambda row: {"type": "configuration", **row},
            "learnings": self._learning,
            "requests": self._request,
            "links": self._links,
            "pools": self._pool,
        }[part]
        for row in rows:
            yield _line(write(row))

    def _learning(self, row: Row) -> Row:
        self._learnings.add(row.pop("number"))
        self._counts["learnings"] += 1
        return {"type": "learning", **row}

    def _request(self, row: Row) -> Row:
        for turn in row["turns"]:
            self._turns.add(turn.pop("number"))
            _translate_turn(turn, self._learnings.of)
        self._counts["requests"] += 1
        self._counts["turns"] += len(row["turns"])
        return {"type": "request", **row}

    def _links(self, row: Row) -> Row:
        links = translate_links(row, self._learnings.of, self._turns.of)
        return {"type": "links", **links}

    def _pool(self, row: Row) -> Row:
        return {"type": "pool", **translate_pool(row, self._learnings.of)}


class ImportFile:
    """Makes calls of the lines of a file, and remembers which rows they have become."""

    def __init__(self) -> None:
        self._learnings, self._turns = array("q"), array("q")
        self._copies: OrderedDict[int, int] = OrderedDict()
        self._counts = {part: ImportCount() for part in PARTS.values()}
        self._notes: list[str] = []
        self._is_complete = False

    @property
    def report(self) -> ImportReport:
        return ImportReport(counts=self._counts, notes=self._notes, is_complete=self._is_complete)

    def calls(self, lines: Iterable[str | bytes]) -> Iterator[dict[str, Any]]:
        """The bodies of the calls. Pass the response of each to `note` before the next one is taken."""
        part, rows, size = "", list[Row](), 0
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            row = _parsed(line, number)
            kind = row.pop("type", "")
            if number == 1:
                _check_header(kind, row)
                continue
            if self._is_complete:
                raise InvalidRequest(f"Line {number} is behind the end of the export.")
            if kind in ("configuration", "end"):
                if rows:
                    yield {part: rows}
                part, rows, size = "", [], 0
                self._is_complete = kind == "end"
                if kind == "configuration":
                    yield {"configuration": row.get("configuration")}
                continue
            if kind not in PARTS:
                raise InvalidRequest(f"Line {number} is of an unknown type {kind!r}.")
            if rows and (PARTS[kind] != part or len(rows) == MOST_ROWS or size + len(line) > MOST_BYTES):
                yield {part: rows}
                rows, size = [], 0
            part = PARTS[kind]
            rows.append(self._translated(part, row, number))
            size += len(line)
        if rows:
            yield {part: rows}

    def note(self, call: dict[str, Any], response: ImportRowsResponse) -> None:
        """Takes in what became of the rows of a call."""
        if response.configuration is not None and response.configuration.reason:
            self._notes.append(response.configuration.reason)
        for part, rows in call.items():
            if part == "configuration":
                continue
            imported: list[ImportedRow] = getattr(response, part)
            for sent, row in zip(rows, imported, strict=True):
                self._count(part, row)
                if part == "learnings":
                    self._learnings.append(row.row)
                elif part == "requests":
                    self._turns.extend(row.turns or [0] * len(sent["turns"]))

    def _count(self, part: str, row: ImportedRow) -> None:
        before = self._counts[part]
        name = "added" if row.is_added else "refused" if row.reason else "present"
        self._counts[part] = replace(before, **{name: getattr(before, name) + 1})
        if row.reason and row.reason not in self._notes and len(self._notes) < 20:
            self._notes.append(row.reason)

    def _translated(self, part: str, row: Row, number: int) -> Row:
        try:
            match part:
                case "learnings":
                    return {**row, "copy_number": self._copy_number(row)}
                case "requests":
                    for turn in row["turns"]:
                        _translate_turn(turn, lambda place: _at(self._learnings, place))
                    return row
                case "links":
                    learning, turn_at = self._learning_at, lambda place: _at(self._turns, place)
                    links = translate_links(row, learning, turn_at)
                    links.pop("kind", None)
                    return links
                case _:
                    return translate_pool(row, self._learning_at)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidRequest(f"Line {number} is not a row of an export: {error!r}") from error

    def _learning_at(self, place: int) -> int:
        return _at(self._learnings, place)

    def _copy_number(self, row: Row) -> int:
        """How many rows before this one say the same."""
        names = "kind", "key", "user_id", "agent_version", "created_at", "trigger", "content"
        identity = hash(tuple(str(row.get(name)) for name in names))
        count = self._copies.pop(identity, -1) + 1
        self._copies[identity] = count
        if len(self._copies) > REMEMBERED:
            self._copies.popitem(last=False)
        return count


def translate_links(row: Row, learning: Number, turn: Number) -> Row:
    """What a learning refers to, with other numbers. References to what is not there are left out.

    >>> translate_links({"learning": 7, "details": {"replaces": [7, 9]}, "events": []}, {7: 1}.get, {}.get)["details"]
    {'replaces': [1]}
    """
    details = {name: _reference(name, value, row, learning, turn) for name, value in row["details"].items()}
    kept = {name: value for name, value in details.items() if value is not None}
    events = [{**event, "details": _event_details(event["details"], learning)} for event in row["events"]]
    return {**row, "learning": learning(row["learning"]), "details": kept, "events": events}


def _reference(name: str, value: Any, row: Row, learning: Number, turn: Number) -> Any:
    match name:
        case "source_interaction_ids" | "window_interaction_ids":
            return _present(map(turn, value))
        case "replaces":
            return _present(map(learning, value))
        case "source_windows":
            windows = [_window(window, learning, turn) for window in value]
            return [window for window in windows if window["user_playbook_id"]]
        case "superseded_by" | "merged_into":
            # Profiles have ids of their own, which are the same everywhere.
            if row.get("kind") == Kind.PROFILE:
                return value
            return str(number) if (number := learning(int(value))) else None
        case _:
            return value


def _window(window: Row, learning: Number, turn: Number) -> Row:
    turns = _present(map(turn, window.get("source_interaction_ids", [])))
    return {"user_playbook_id": learning(window["user_playbook_id"]) or 0, "source_interaction_ids": turns}


def _event_details(details: Row, learning: Number) -> Row:
    """The playbooks that a decision retired are the only rows that an event refers to."""
    return {**details, "retired": _present(map(learning, details["retired"]))} if "retired" in details else details


def translate_pool(row: Row, learning: Number) -> Row:
    """Clusters with other numbers of their playbooks."""
    clusters = [
        {
            "number": cluster["number"],
            "agent_playbook": learning(cluster["agent_playbook"]) if cluster["agent_playbook"] else 0,
            "members": _present(map(learning, cluster["members"])),
        }
        for cluster in row["clusters"]
    ]
    return {**row, "clusters": clusters}


def _translate_turn(turn: Row, learning: Number) -> None:
    """Playbooks that were in the prompt of a turn, or that it cites, with other numbers; others are left out."""
    for field, name in (("retrieved_learnings", "learning_id"), ("citations", "real_id")):
        if field in turn:
            turn[field] = [each for each in (_named(each, name, learning) for each in turn[field]) if each]


def _named(reference: Row, name: str, learning: Number) -> Row | None:
    given = str(reference[name])
    if reference["kind"] == Kind.PROFILE or not given.isdecimal():
        return reference
    number = learning(int(given))
    return {**reference, name: str(number)} if number else None


def _present(numbers: Iterable[int | None]) -> list[int]:
    return [number for number in numbers if number]


def _at(numbers: "array[int]", place: int) -> int:
    return numbers[place - 1] if 0 < place <= len(numbers) else 0


def _line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n"


def _parsed(line: str | bytes, number: int) -> Row:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InvalidRequest(f"Line {number} is not JSON: {error}") from error
    if not isinstance(row, dict):
        raise InvalidRequest(f"Line {number} is not a row of an export.")
    return row


def _check_header(kind: str, row: Row) -> None:
    if kind != "header" or row.get("format") != FORMAT:
        raise InvalidRequest("This is no export of Reflexio: the first line has no header.")
    if row.get("version") != VERSION:
        raise InvalidRequest(f"The export has format version {row.get('version')!r}; this Reflexio reads {VERSION}.")
