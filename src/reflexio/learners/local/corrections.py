"""Corrections that are no plain orders: questions, wishes, reproaches, and what was asked for taken back.

The forms are in `corrections.toml`; each says which instruction it becomes.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from re import Match, Pattern
from typing import Any

from reflexio.language.words import CueFile
from reflexio.learners.local.case_details import generalised
from reflexio.learners.local.grammar import as_instruction, base_form, is_verb, third_person_pronouns

FORMS = CueFile(Path(__file__).with_name("corrections.toml"))


@dataclass(frozen=True)
class Correction:
    """An instruction in another form. `trigger` is the case that it names itself."""

    content: str
    trigger: str = ""
    is_permission: bool = False


@cache
def _forms() -> list[tuple[Pattern[str], dict[str, Any]]]:
    return [(FORMS.compile(form["pattern"]), form) for form in FORMS.data["forms"]]


@cache
def _any_form() -> Pattern[str]:
    """All forms in one pattern, which most sentences fail at once."""
    return re.compile("|".join(re.sub(r"\?P<\w+>", "?:", pattern.pattern) for pattern, _ in _forms()), re.I)


def correction(text: str, *, is_answered: bool) -> Correction | None:
    """What a clause asks for, when it has one of the forms. `is_answered`: an answer of the agent came before it."""
    if not _any_form().match(text):
        return None
    for pattern, form in _forms():
        if not is_answered and "answer" in form.get("needs", ()):
            continue
        match = pattern.match(text)
        if match is None or not _counts(match, form, text):
            continue
        words = _words_of(match)
        trigger = str(form.get("trigger", "")).format(**words)
        is_permission = bool(form.get("is_permission"))
        return Correction(as_instruction(form["says"].format(**words)), _about(trigger), is_permission)
    return None


def _counts(match: Match[str], form: dict[str, Any], text: str) -> bool:
    groups = match.groupdict()
    has_verb = "verb" not in groups or is_verb(groups["verb"])
    if form.get("is_strict") and not FORMS["strong_marker"].search(text):
        return False
    return has_verb and (not form.get("marker") or bool(FORMS["marker"].search(text)))


def _words_of(match: Match[str]) -> dict[str, str]:
    words = {name: (value or "").strip() for name, value in match.groupdict().items()}
    if "verb" in words:
        words["verb"] = base_form(words["verb"])
        words["rest"] = " " + words["rest"]
    if words.get("how"):
        words["how"] += " " if "verb" in words else ""
    if "tongue" in words:
        words["tongue"] = (words["tongue"] or words.get("tongue2", "")).capitalize()
    kept = FORMS["without"].search(match.group())
    return {**words, "kept": f" {kept['kept']}" if kept and kept["kept"] not in words.get("rest", "") else ""}


def _about(trigger: str) -> str:
    return generalised(third_person_pronouns(trigger))
