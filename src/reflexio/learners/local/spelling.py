"""Chat spelling as it would stand in a book: "im" is "I'm", "dont" is "don't", "pls" is "please".

The rules read the corrected sentence; evidence quotes the sentence as it was typed.
"""

import re
from functools import cache
from pathlib import Path

from reflexio.language.words import CueFile

_TOKEN = re.compile(r"[\w'’]+")
TYPED = CueFile(Path(__file__).with_name("spelling.toml"))


@cache
def _meant() -> dict[str, str]:
    pairs = (line.split("=") for line in TYPED.data["words"].replace("\n", " ").split(","))
    return {typed.strip(): meant.strip() for typed, meant in pairs}


@cache
def _typed() -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.@/#'’-])(?:{'|'.join(map(re.escape, _meant()))})(?![\w@/'’-]|\.\w)", re.I)


def spelled(text: str) -> str:
    """The text with the usual spelling of what people type in a hurry.

    >>> spelled("im vegan and dont eat eggs, pls")
    "I'm vegan and don't eat eggs, please"
    """
    if _meant().keys().isdisjoint(tokens := _TOKEN.findall(text.lower())) and not {"im", "id"} & set(tokens):
        return text
    for name, meant in (("i_am", "I'm"), ("i_would", "I'd")):
        text = TYPED[name].sub(rf"\g<before>{meant}", text)
    return _typed().sub(_in_the_same_case, text)


def _in_the_same_case(typed: re.Match[str]) -> str:
    meant = _meant()[typed[0].lower()]
    return meant[:1].upper() + meant[1:] if typed[0][:1].isupper() else meant
