"""What a standing order chooses on a matter of which it can choose one: the language, the tone, the unit, the channel.

The words of six languages are read together, so that "In English please from now on." replaces "Antworte auf Deutsch."
"""

import re
from functools import cache
from pathlib import Path

from reflexio.language.cues import folded

_FILE = Path(__file__).with_name("choices.toml")
MOST_READ = 300  # characters: a standing order is short
_BEFORE = 30  # characters before a value in which it can be refused


def other_choice(newer: str, older: str) -> str:
    """The matter on which two orders choose differently; empty when both can hold.

    >>> other_choice("In English please from now on.", "Antworte immer auf Deutsch.")
    'language'
    >>> other_choice("Answer in German.", "Use metric units.")
    ''
    """
    now, before = chosen(newer), chosen(older)
    return next((matter for matter in now.keys() & before.keys() if now[matter] != before[matter]), "")


def chosen(order: str) -> dict[str, str]:
    """By matter, the one value that an order names; an order that names two chooses none."""
    plain = " ".join(folded(order[:MOST_READ]).split())
    choices = {}
    for matter, (about, values) in _matters().items():
        if about is None or about.search(plain):
            named = [value for value, pattern in values.items() if _is_wanted(plain, pattern)]
            if len(named) == 1:
                choices[matter] = named[0]
    return choices


def chooses_for_good(order: str) -> bool:
    """Whether an order in another language chooses something and says that the choice lasts.

    >>> chooses_for_good("Schreiben Sie mir lieber eine Mail."), chooses_for_good("Zeig die Zahlen als Tabelle.")
    (True, False)
    """
    return bool(chosen(order)) and bool(_for_good().search(folded(order[:MOST_READ])))


def switches_language(sentence: str) -> bool:
    """Whether a sentence asks for another language from now on, and for nothing else.

    >>> switches_language("Lieber doch auf Englisch."), switches_language("Wie sagt man das auf Englisch?")
    (True, False)
    """
    return bool(_switch().match(" ".join(folded(sentence[:MOST_READ]).split())))


def _is_wanted(plain: str, pattern: re.Pattern[str]) -> bool:
    return any(
        not _not_wanted().search(plain[max(0, match.start() - _BEFORE) : match.start()])
        for match in pattern.finditer(plain)
    )


@cache
def _data() -> dict[str, object]:
    import tomllib

    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\n\s*", "", pattern.strip()))


@cache
def _not_wanted() -> re.Pattern[str]:
    return _compiled(str(_data()["not_wanted"]))


@cache
def _for_good() -> re.Pattern[str]:
    return _compiled(str(_data()["for_good"]))


@cache
def _switch() -> re.Pattern[str]:
    tongues = "|".join(pattern.pattern for pattern in _matters()["language"][1].values())
    return _compiled(str(_data()["switch"]).replace("{tongue}", f"(?:{tongues})"))


@cache
def _matters() -> dict[str, tuple[re.Pattern[str] | None, dict[str, re.Pattern[str]]]]:
    matters = _data()["matters"]
    assert isinstance(matters, dict)
    return {name: _matter(patterns) for name, patterns in matters.items()}


def _matter(patterns: dict[str, str]) -> tuple[re.Pattern[str] | None, dict[str, re.Pattern[str]]]:
    values = {value: pattern for value, pattern in patterns.items() if value != "about"}
    tongue = "|".join(f"(?:{re.sub(chr(10) + ' *', '', pattern)})" for pattern in values.values())
    about = patterns.get("about")
    return _compiled(about.replace("{tongue}", f"(?:{tongue})")) if about else None, {
        value: _compiled(pattern) for value, pattern in values.items()
    }
