"""The prompts: Markdown files with a header for the reader, read once."""

from functools import cache
from importlib.resources import files


@cache
def prompt(name: str) -> str:
    """The text of a prompt without its header."""
    _, _, text = (files(__package__) / f"{name}.md").read_text("utf-8").removeprefix("---\n").partition("\n---\n")
    return text.strip()
