"""What commands print: tables for people, lines for pipes, JSON for programs, progress on standard error.

In a terminal a table fits its width. Into a pipe goes one row a line, its cells separated by tabs, whole and without
colours. JSON is ASCII, so that no character of a stored text can steer a terminal and none is lost.
"""

import dataclasses
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from reflexio.cli.terminal import echo, visible

if TYPE_CHECKING:
    from pydantic import BaseModel

    from reflexio.cli.console import Terminal
    from reflexio.models.operation import OperationStatusInfo
    from reflexio.models.wire import PageResponse

T = TypeVar("T")
PAGE = 1000
"""Rows that are asked for at once."""
WIDEST = 120
"""Columns beyond which a table becomes hard to read."""
GAP = 2
"""Spaces between two columns."""
SHORT = 20
"""The longest cell that stays in the line of a row when the row is too long for the terminal."""
LONGEST_CELL = 300
"""Characters of a text in a table of a terminal; `show` has all of it."""


def print_json(value: Any) -> None:
    """Prints one JSON document."""
    echo(json.dumps(plain(value), indent=2))


def plain(value: Any) -> Any:
    """A response as JSON shows it, without the fields that are not set."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_none=True)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain(dataclasses.asdict(value))
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str = "") -> None:
    """A table in a terminal, lines with tabs in a pipe. Without rows: what `empty` says, to people only."""
    cells = [[_one_line(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in cells:
            echo("\t".join(row))
    elif cells:
        _draw(columns, cells)
    if not cells and empty:
        echo(empty, err=True)


def _one_line(cell: object) -> str:
    return " ".join(visible("" if cell is None else str(cell)).split())


def _draw(columns: Sequence[str], rows: list[list[str]]) -> None:
    """A table where it fits. Else its short cells are a line, and each long one has lines of its own below."""
    console = _console()
    widths = [max(map(len, [name, *cells])) for name, *cells in zip(columns, *rows, strict=True)]
    if sum(widths) + GAP * (len(widths) - 1) <= console.width:
        _draw_lines(columns, rows, widths, [])
        return
    short: list[int] = []
    for number, width in enumerate(widths):
        if width <= SHORT and sum(widths[place] + GAP for place in short) + width <= console.width:
            short.append(number)
    _draw_lines(columns, rows, widths, [number for number in range(len(columns)) if number not in short])


def _draw_lines(columns: Sequence[str], rows: list[list[str]], widths: list[int], long: list[int]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    console, short = _console(), [number for number in range(len(columns)) if number not in long]

    def line(cells: Sequence[str]) -> str:
        return (" " * GAP).join(cells[number].ljust(widths[number]) for number in short).rstrip()

    if short:
        console.print(Text(line(columns), "bold underline"), soft_wrap=True)
    for row in rows:
        if short:
            console.print(Text(line(row), "cyan" if long else ""), soft_wrap=True)
        # A long id, in the first column, is what a reader needs last.
        for number in sorted(long, key=lambda number: (number == 0, number)):
            if row[number]:
                console.print(Padding(Text(_shortened(row[number]), "" if number else "dim"), (0, 0, 0, 2)))


def _console() -> "Terminal":
    from reflexio.cli.console import Terminal

    console = Terminal(highlight=False)
    console.width = min(console.width, WIDEST)
    return console


def _shortened(cell: str) -> str:
    return cell if len(cell) <= LONGEST_CELL else f"{cell[: LONGEST_CELL - 1]}…"


def print_text(text: str, indent: int = 0) -> None:
    """Text that breaks between words in a terminal, its further lines indented as the first; whole in a pipe."""
    if not sys.stdout.isatty():
        echo(" " * indent + text)
        return
    from rich.padding import Padding
    from rich.text import Text

    _console().print(Padding(Text(visible(text)), (0, 0, 0, indent)))


def print_fields(fields: Iterable[tuple[str, object]]) -> None:
    """One value a line, below each other, without those that are empty."""
    shown = [(name, str(value)) for name, value in fields if value not in (None, "", [], {})]
    width = max((len(name) for name, _ in shown), default=0)
    if not sys.stdout.isatty():
        for name, value in shown:
            echo(f"{name.ljust(width)}  {value}")
        return
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for name, value in shown:
        table.add_row(Text(name, "dim"), Text(visible(value)))
    _console().print(table)


def heading(text: str) -> None:
    """A line above a part of the output; in a terminal it is bold."""
    import typer

    typer.secho(visible(text), bold=sys.stdout.isatty())


def moment(at: int) -> str:
    """A time as people read it, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M") if at else ""


def counted(count: int, one: str, many: str = "") -> str:
    """A number with its word.

    >>> counted(1, "turn"), counted(2, "turn"), counted(0, "reply", "replies")
    ('1 turn', '2 turns', '0 replies')
    """
    return f"{count} {one if count == 1 else many or one + 's'}"


def pages(read: "Callable[[int, str | None], tuple[list[T], PageResponse]]", limit: int | None) -> tuple[list[T], bool]:
    """The rows of as many pages as `limit` needs, and whether there are more."""
    rows: list[T] = []
    cursor: str | None = None
    while True:
        wanted = PAGE if limit is None else min(PAGE, limit - len(rows))
        some, page = read(wanted, cursor)
        rows += some
        cursor = page.next_cursor
        if cursor is None or (limit is not None and len(rows) >= limit):
            return rows, cursor is not None


def print_more(has_more: bool) -> None:
    """Tells people that a list goes on."""
    if has_more and sys.stdout.isatty():
        echo("There are more: --all shows them, --limit some of them.", err=True)


ShowProgress = Callable[[int, int | None, str], None]
"""Takes how much is done, of how much if that is known, and a few words."""


@contextmanager
def progress(description: str) -> Iterator[ShowProgress]:
    """A bar on standard error, in a terminal only."""
    if not sys.stderr.isatty():
        yield lambda done, total, words: None
        return
    from rich.progress import BarColumn, Progress, TextColumn

    from reflexio.cli.console import Terminal

    columns = TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[words]}")
    with Progress(*columns, console=Terminal(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=None, words="")
        yield lambda done, total, words: bar.update(task, completed=done, total=total, words=visible(words)[:40])


def follow(description: str, statuses: "Iterable[OperationStatusInfo]", *, stop: str) -> "OperationStatusInfo":
    """Shows the progress of an operation until its end. After Ctrl-C it goes on, and `stop` says how to end it."""
    import typer

    from reflexio.cli.exit_codes import INTERRUPTED

    last = None
    try:
        with progress(description) as show:
            for status in statuses:
                last = status
                done = status.processed_users + status.failed_users
                show(done, status.total_users or None, f"{done} of {status.total_users}")
    except KeyboardInterrupt:
        echo(f"The server goes on with it. To stop it: {stop}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    assert last is not None  # the stream of an operation has at least the status of its end
    return last


def print_response(response: "BaseModel", message: str | None, *, as_json: bool) -> None:
    """A response as JSON, or its message."""
    if as_json:
        print_json(response)
    elif message:
        echo(message)
