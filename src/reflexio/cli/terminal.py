"""Plain text for a terminal: characters that move its cursor, colour it or hide text never reach it."""

from typing import Any

import typer

from reflexio.models.wording import without_hidden


def visible(text: str) -> str:
    """What of a text a terminal may show."""
    return without_hidden(text).replace("\r", "")


def echo(message: Any = "", *, err: bool = False) -> None:
    """Prints plain text."""
    typer.echo(visible(str(message)), err=err)
