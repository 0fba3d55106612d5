"""What commands print to people, to pipes and to programs."""

import json
import sys
from typing import Any

import pytest

from reflexio.cli import output
from reflexio.cli.output import print_fields, print_json, print_table, print_text

COLUMNS = ("id", "user", "status", "what is known")
ROWS = [
    ("0ce0d85d-4f27-4d82-8803-4dde19526c57", "ann", "current", "Lives in Oslo and " + "likes tea " * 20),
    ("f" * 120, "bob\tb", "pending", "[bold]No markup[/bold] :smile:\x1b[31m"),
]


def open_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on standard output is a terminal of 80 columns without colours."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)


def test_a_table_fits_the_terminal_and_ids_stay_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_terminal(monkeypatch)
    print_table(COLUMNS, ROWS)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, lines)) <= 80
    assert "  0ce0d85d-4f27-4d82-8803-4dde19526c57" in lines
    assert any("[bold]No markup[/bold] :smile:" in line for line in lines)
    print_table(COLUMNS, [("1", "ann", "current", "Short.")])
    assert capsys.readouterr().out.splitlines() == ["id  user  status   what is known", "1   ann   current  Short."]


def test_long_texts_are_cut_in_a_table_and_whole_elsewhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_terminal(monkeypatch)
    long = "word " * 200
    print_table(COLUMNS, [("1", "ann", "current", long)])
    assert "…" in capsys.readouterr().out
    print_fields([("what is known", long), ("nothing", "")])
    print_text(long, 4)
    shown = capsys.readouterr().out
    assert shown.count("word") == 400
    assert max(map(len, shown.splitlines())) <= 80
    assert "nothing" not in shown


def test_in_a_pipe_a_row_is_a_line_with_tabs_and_nothing_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(COLUMNS, [*ROWS, ("1", None, "a\nb", "word " * 200)], empty="none")
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [len(cells) for cells in lines] == [4, 4, 4]
    assert lines[1] == ["f" * 120, "bob b", "pending", "[bold]No markup[/bold] :smile:[31m"]
    assert lines[2][1:3] == ["", "a b"]
    print_table(COLUMNS, [], empty="none")
    assert capsys.readouterr() == ("", "none\n")


def test_json_is_ascii_and_loses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    value: dict[str, Any] = {"text": "é \x1b[2J \u202e \U000e0041", "list": [{"n": 1}]}
    print_json(value)
    shown = capsys.readouterr().out
    assert shown.isascii()
    assert "\x1b" not in shown
    assert json.loads(shown) == value


def test_progress_is_silent_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with output.progress("Working") as show:
        show(1, 2, "half")
    assert capsys.readouterr() == ("", "")
