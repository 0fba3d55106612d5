"""No pattern of the package may take long on any text that can reach it, whoever wrote the text.

A pattern is tried with texts that repeat one unit, as long as the texts that it reads: `LONGEST` says what cuts them.
"""

import ast
import importlib
import inspect
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import reflexio
from reflexio.interactions import phone_numbers
from reflexio.language import contradiction, identify, standing
from reflexio.language.cues import LANGUAGES, cues_of
from reflexio.language.words import CueFile, collapsed
from reflexio.learners.local import instructions
from reflexio.learners.local.sentences import LONGEST_SENTENCE, MOST_READ

Cut = Callable[[str], str]
LIMIT = 0.05
"""Seconds of processor time."""
UNCUT = 100_000
"""Characters of a text of a caller that nothing cuts."""
UNITS = (
    *" \n\t()[{<>`\"'“”-—.,:;?!_#/\\1aA我é",
    *("\n\n", "\n \n", " - ", "- ", "1,", "1.", "1-", "1 1-", "a ", "a.", ". ", ", ", "a-", "a'", "a@", "a@a.", ";x "),
    *(
        "A b. ",
        "```\n",
        "> ",
        "http://",
        "www.",
        "<think>",
        "</",
        "我。",
        "the user ",
        "user's ",
        "and ",
        "or ",
        "not ",
    ),
    *(
        "instead ",
        "if ",
        "when ",
        "please ",
        "I ",
        "I am ",
        "my ",
        "no ",
        "now ",
        "do not ",
        "is ",
        "to ",
        "in ",
        "und ",
    ),
    *("never ", "always ", "don't ", "score: ", "x, y; "),
)


def _first(most: int) -> Cut:
    return lambda text: text[:most]


LONGEST: dict[str, Cut] = {
    "reflexio.interactions.phone_numbers.OTHER_WORD": _first(phone_numbers.BEFORE),
    "reflexio.interactions.phone_numbers.PHONE_WORD": _first(phone_numbers.BEFORE),
    "reflexio.language.contradiction": lambda text: collapsed(text, contradiction.MOST_READ),
    "reflexio.language.words.CUES": lambda text: collapsed(text, contradiction.MOST_READ),
    "reflexio.language.standing": lambda text: collapsed(text, standing.MOST_READ),
    "reflexio.language.identify": _first(identify.MOST_READ),
    "reflexio.learners.local.corrections": _first(instructions._LONGEST_FORM),
    "reflexio.learners.local.sentences._": _first(MOST_READ),
    "reflexio.learners.local.summarising": _first(MOST_READ),
    "reflexio.learners.local": _first(LONGEST_SENTENCE),
}
"""By the beginning of a pattern's name: what the code makes of a text before the pattern reads it."""
OF_WHOLE_TURNS = ("injection", "handed_over", "german", "step", "courtesy_of_expert", "again")
"""Cues of `learners/local` that are searched before a turn is cut into sentences."""


@cache
def _patterns() -> dict[str, tuple[re.Pattern[Any], Cut]]:
    """All patterns by name: those of modules, of their cached functions, of cue files, and those written in a call."""
    named: dict[str, re.Pattern[Any]] = {}
    for module in _modules():
        for name, value in list(vars(module).items()):
            if hasattr(value, "cache_info") and value.__module__ == module.__name__ and not _parameters(value):
                named.update(_inside(f"{module.__name__}.{name}()", value()))
            else:
                named.update(_inside(f"{module.__name__}.{name}", value))
        named.update(_written_in_calls(module.__name__, Path(str(module.__file__))))
    for language in LANGUAGES:
        named.update(_inside(f"reflexio.learners.local.spoken.{language}", cues_of(language)))
    once = {(pattern.pattern, pattern.flags): name for name, pattern in reversed(named.items())}
    return {name: (named[name], _cut_of(name)) for name in once.values()}


def _modules() -> Iterator[Any]:
    for found in pkgutil.walk_packages(reflexio.__path__, "reflexio."):
        if "migrations" not in found.name and not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def _parameters(function: Callable[..., Any]) -> Any:
    return inspect.signature(function).parameters


def _inside(name: str, value: Any) -> Iterator[tuple[str, re.Pattern[Any]]]:
    match value:
        case re.Pattern():
            yield name, value
        case CueFile():
            for section in ("phrases", "regexes"):
                yield from ((f"{name}[{key}]", value[key]) for key in value.data.get(section, {}))
            yield from _inside(f"{name}.facts", [cue.pattern for cue in getattr(value, "facts", ())])
            yield from _inside(f"{name}.topics", [topic.choices for topic in getattr(value, "topics", ())])
            for pairs, entries in value.data.get("pairs", {}).items():
                yield from _inside(f"{name}.{pairs}", [value.compile(pattern) for pattern, _ in entries])
        case dict():
            yield from _inside(name, list(value.values()))
        case list() | tuple() | set() | frozenset():
            for place, part in enumerate(value):
                yield from _inside(f"{name}[{place}]", part)


def _written_in_calls(module: str, file: Path) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """As in `re.sub(r"…", …)`. Anchored as the function does it."""
    for call in ast.walk(ast.parse(file.read_text())):
        match call:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="re"), attr=verb), args=[ast.Constant(value=str(written)), *_]
            ):
                flags = sum(getattr(re, word) for word in re.findall(r"attr='([A-Z]+)'", ast.dump(call)))
                anchored = rf"\A(?:{written})" if verb in ("match", "fullmatch") else written
                yield f"{module}:{call.lineno}", re.compile(anchored, flags)


def _cut_of(name: str) -> Cut:
    if name.startswith("reflexio.learners.local") and any(f"[{cue}]" in name for cue in OF_WHOLE_TURNS):
        return _first(MOST_READ)
    return next((LONGEST[beginning] for beginning in LONGEST if name.startswith(beginning)), _first(UNCUT))


@cache
def _sources() -> str:
    return "\n".join(file.read_text() for file in Path(reflexio.__path__[0]).rglob("*.py"))


def _is_anchored(name: str) -> bool:
    """Whether a pattern of a module is only matched at the beginning of a text."""
    if "[" in name or "(" in name or ":" in name:
        return False
    verbs = set(re.findall(rf"\b{name.rpartition('.')[2]}\.(\w+)\(", _sources()))
    return bool(verbs) and verbs <= {"match", "fullmatch"}


def _slowness(pattern: re.Pattern[Any], unit: str, cut: Cut, *, is_anchored: bool) -> tuple[float, str]:
    """For ever longer texts up to the longest, as long as they are fast. Only the very end of each is another one."""
    seconds, length, longest = 0.0, 0, len(cut("x" * UNCUT))
    for length in sorted({min(longest, most) for most in (2_000, 10_000, UNCUT)}):
        text = cut(f"x {unit * length}"[: length - 1] + "y")[:-1] + "\x01"
        seconds = _seconds(
            pattern, text.encode() if isinstance(pattern.pattern, bytes) else text, is_anchored=is_anchored
        )
        if seconds > LIMIT:
            break
    return seconds, f"{length} characters of {unit!r}"


def _seconds(pattern: re.Pattern[Any], text: Any, *, is_anchored: bool) -> float:
    best = float("inf")
    for _ in range(3):
        begun = time.process_time()
        if is_anchored:
            pattern.match(text), pattern.fullmatch(text)
        else:
            for _match in pattern.finditer(text):
                pass
        best = min(best, time.process_time() - begun)
        if best < LIMIT:
            break
    return best


ROOMS = ("agents", "client", "language", "learners.local.spoken", "learners", "models", "retrieval", "storage", "")


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_no_text_holds_up_a_pattern(room: str) -> None:
    slow = []
    for name, (pattern, cut) in _patterns().items():
        if next(of for of in ROOMS if name.startswith(f"reflexio.{of}")) != room:
            continue
        is_anchored = _is_anchored(name)
        slowest = max(_slowness(pattern, unit, cut, is_anchored=is_anchored) for unit in UNITS)
        if slowest[0] > LIMIT:
            slow.append(f"{name}: {slowest[0] * 1000:.0f} ms for {slowest[1]}: {pattern.pattern[:80]!r}")
    assert not slow, "\n".join(slow)


def test_a_pattern_that_reads_a_text_again_and_again_is_slow() -> None:
    """The test above measures enough to see one."""
    assert _seconds(re.compile(r"\s+x"), " " * 50_000, is_anchored=False) > LIMIT
