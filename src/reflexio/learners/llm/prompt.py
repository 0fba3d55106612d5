"""The prompts: Markdown files, read once. Their hash is kept with everything learned."""

from functools import cache
from hashlib import sha256
from importlib.resources import files

PROMPTS = ("extract", "consolidate", "generalise")
"""Those that learnings come from."""
OTHERS = ("judge", "reword")
FINGERPRINT_LENGTH = 12


@cache
def prompt(name: str) -> str:
    """The text of a prompt without its header."""
    _, _, text = _file(name).removeprefix("---\n").partition("\n---\n")
    return text.strip()


@cache
def fingerprint() -> str:
    """Changes whenever a prompt does that learnings come from."""
    return sha256("\0".join(map(_file, PROMPTS)).encode()).hexdigest()[:FINGERPRINT_LENGTH]


def _file(name: str) -> str:
    return (files(__package__) / "prompts" / f"{name}.md").read_text("utf-8")
