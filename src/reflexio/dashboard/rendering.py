"""Fills templates. Everything is escaped, a name that a page did not give is an error, and there are few filters."""

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from reflexio.dashboard.diff import mark_added, mark_changes, mark_removed
from reflexio.dashboard.marks import mark_code, mark_words
from reflexio.dashboard.scales import exact_number, short_number
from reflexio.dashboard.static_files import static_path
from reflexio.retrieval.context import occasion

TEMPLATES = Path(__file__).with_name("templates")
STEPS = ((60, 1, "second"), (3600, 60, "minute"), (86_400, 3600, "hour"), (30 * 86_400, 86_400, "day"))
MOST_COUNTED = 10_000
"""Counts stop here: counting a million rows would make a page slow, and nobody needs the number."""


@cache
def environment() -> Environment:
    loader = FileSystemLoader(TEMPLATES)
    made = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        auto_reload=False,
    )  # fmt: skip
    made.globals.update(
        static=static_path,
        plural=plural,
        changes=mark_changes,
        changes_removed=mark_removed,
        changes_added=mark_added,
        mark_words=mark_words,
    )
    made.filters.update(
        ago=ago, number=exact_number, short=short_number, counted=counted, part=path_part, query=query, day=day,
        plural=plural, minute=minute, occasion=occasion, coded=mark_code,
    )  # fmt: skip
    return made


def render(template: str, values: dict[str, Any]) -> str:
    return environment().get_template(template).render(values)


@pass_context
def ago(context: Context, at: int) -> Markup:
    """How long ago a second since 1970 was, with the exact time under the pointer."""
    return time_element(at, age(context["now"] - at))


def time_element(at: int, words: str) -> Markup:
    moment = datetime.fromtimestamp(at, UTC)
    element = Markup('<time datetime="{}" title="{} UTC">{}</time>')
    return element.format(moment.isoformat(), moment.strftime("%-d %b %Y, %H:%M:%S"), words)


def age(seconds: int) -> str:
    """An age in words.

    >>> age(5), age(60), age(7_200), age(3 * 86_400), age(90 * 86_400), age(-30)
    ('just now', '1 minute ago', '2 hours ago', '3 days ago', '3 months ago', 'just now')
    """
    if seconds < 10:
        return "just now" if seconds > -60 else "in the future"
    for end, size, name in STEPS:
        if seconds < end:
            return f"{plural(seconds // size, name)} ago"
    months = seconds // (30 * 86_400)
    return f"{plural(months, 'month')} ago" if months < 24 else f"{months // 12} years ago"


def minute(at: int) -> Markup:
    """The time of day, with the date under the pointer."""
    return time_element(at, datetime.fromtimestamp(at, UTC).strftime("%H:%M"))


def day(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%-d %b %Y")


def counted(count: int) -> str:
    """A count that may have stopped early.

    >>> counted(12), counted(10_001)
    ('12', 'more than 10,000')
    """
    return f"more than {MOST_COUNTED:,}" if count > MOST_COUNTED else exact_number(count)


def plural(count: int, name: str, several: str = "") -> str:
    return f"{count:,} {name if count == 1 else several or name + 's'}"


def path_part(value: object) -> str:
    """A value as one part of a path. Slashes and dots are escaped too."""
    return quote(str(value), safe="").replace(".", "%2E")


def query(pairs: dict[str, Any] | Iterable[tuple[str, Any]], **changes: Any) -> str:
    """A query string of the pairs that have a value, with changes; empty without any."""
    merged = {**dict(pairs), **changes}
    given = urlencode({name: value for name, value in merged.items() if value not in (None, "")})
    return f"?{given}" if given else ""
