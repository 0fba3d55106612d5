"""Texts of others inside a prompt: one bullet a line, no tag that could be mistaken for ours, never too long."""

import re
from collections.abc import Sequence

LONGEST_LESSON = 2_000
_TAG = re.compile(r"<(?=[/!?|a-zA-Z])")


def escaped(text: str) -> str:
    """Without anything that opens or closes a tag; comparisons like `a < b` stay as they are.

    >>> escaped("if a < b: </lessons>")
    'if a < b: &lt;/lessons>'
    """
    return _TAG.sub("&lt;", text) if "<" in text else text


def one_line(text: str) -> str:
    return " ".join(text.split())


def bullet(text: str) -> str:
    return f"- {one_line(text)}"


def shortened(text: str, most: int = LONGEST_LESSON) -> str:
    """
    >>> shortened("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def fitting(texts: Sequence[str], most: int) -> list[str]:
    """As many of the last texts as `most` characters hold, in their order; one alone is cut rather than left out.

    What matters most stands last in a list of lessons, so it is the first ones that make room.
    """
    kept: list[str] = []
    for text in reversed(texts):
        room = most - sum(len(each) + 1 for each in kept)
        if len(text) > room:
            return kept[::-1] if kept else [shortened(text, room)] if room > 1 else []
        kept.append(text)
    return kept[::-1]
