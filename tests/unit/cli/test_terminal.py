"""Stored text reaches a terminal without characters that steer it."""

import io

import pytest
from rich.table import Table
from rich.text import Text

from reflexio.cli.console import Terminal
from reflexio.cli.terminal import echo, visible

EVIL = "safe\x1b[2J\x1b]0;title\x07\u202e\U000e0041\x9b31m\rtext"
STEERING = set("\x1b\x07\u202e\U000e0041\x9b\r")


def test_plain_text_loses_what_steers_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    echo(EVIL)
    shown = capsys.readouterr().out
    assert not STEERING & set(shown)
    assert shown.startswith("safe")
    assert shown.endswith("text\n")


def test_lines_tabs_and_emoji_stay() -> None:
    assert visible("a\tb\nc 👩‍🔧") == "a\tb\nc 👩‍🔧"


def test_tables_and_coloured_text_lose_it_too_and_keep_their_colours() -> None:
    sink = io.StringIO()
    terminal = Terminal(file=sink, force_terminal=True, color_system="standard", width=200)
    table = Table()
    table.add_column(EVIL)
    table.add_row(Text(EVIL, "green"))
    terminal.print(table)
    terminal.print(Text(EVIL, "red"))
    shown = sink.getvalue()
    assert "\x1b[31m" in shown  # the console's own red
    assert "\x1b[2J" not in shown
    assert "\x1b]0" not in shown
    assert not (STEERING - {"\x1b"}) & set(shown)
