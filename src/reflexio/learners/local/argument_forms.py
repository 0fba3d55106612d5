"""How two values of one argument differ in form: case, a prefix, a date, a word.

What differs is said without the value, which belongs to one case.
"""

import re

_DATES = [
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d.*"), "YYYY-MM-DDTHH:MM"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d.*"), "YYYY-MM-DD HH:MM"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "YYYY-MM-DD"),
    (re.compile(r"\d\d/\d\d/\d{4}"), "DD/MM/YYYY"),
    (re.compile(r"\d\d\.\d\d\.\d{4}"), "DD.MM.YYYY"),
    (re.compile(r"\d\d:\d\d"), "HH:MM"),
]
_SEPARATORS = re.compile(r"[\s./()-]+")
_MOST_WORDS = 3  # that differ
_LONGEST_AFFIX = 6


def form_difference(key: str, old: str, new: str) -> str:
    """How the new value of an argument is to be formed; empty when it is simply another value.

    >>> form_difference("code", "welcome10", "WELCOME10"), form_difference("date", "12 May", "2026-05-12")
    ('code in upper case', 'date as YYYY-MM-DD')
    >>> form_difference("customer", "4711", "C-4711"), form_difference("phone", "12 34", "1234")
    ('customer beginning with "C-"', 'phone without spaces or other separators')
    >>> form_difference("sql", "select id from users", "select id from app.users")
    'app.users instead of users in sql'
    """
    if words := _words_that_differ(old.split(), new.split()):
        return f"{words} in {key}"
    form = _form(old, new) if old and new else ""
    return form and f"{key} {form}"


def _form(old: str, new: str) -> str:
    if old.lower() == new.lower():
        return "in upper case" if new.isupper() else "in lower case" if new.islower() else ""
    if form := next((name for pattern, name in _DATES if pattern.fullmatch(new) and not pattern.fullmatch(old)), ""):
        return f"as {form}"
    if _SEPARATORS.sub("", old) == new:
        return "without spaces or other separators"
    return _affix(old, new)


def _affix(old: str, new: str) -> str:
    if " " in new:
        return ""
    if new.endswith(old) and len(new) - len(old) <= _LONGEST_AFFIX:
        return f'beginning with "{new[: -len(old)]}"'
    if new.startswith(old) and len(new) - len(old) <= _LONGEST_AFFIX:
        return f'ending with "{new[len(old) :]}"'
    return ""


def _words_that_differ(old: list[str], new: list[str]) -> str:
    """The words of a query or a command that had to be others; not of two texts of which most is other."""
    if len(old) != len(new):
        return ""
    pairs = dict.fromkeys((after, before) for before, after in zip(old, new, strict=True) if before != after)
    if not pairs or len(pairs) > _MOST_WORDS or 2 * len(pairs) >= len(new):
        return ""
    return ", ".join(f"{after} instead of {before}" for after, before in pairs)
