"""Tables and colours for a terminal. Imports rich: import it late."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from reflexio.cli.terminal import visible

PIPE_WIDTH = 100_000
"""Columns: longer than the longest line."""


class Terminal(Console):
    """A rich console that adds colours itself, and shows none that are in the text."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def unlimited() -> Terminal:
    """A console that fits its terminal; in a pipe it neither wraps nor cuts lines."""
    console = Terminal()
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    return console
