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
from reflexio.learners.local.grammar import as_instruction, base_form, is_verb, third_person_pronouns, was_done

_LONG_ANSWER = 25  # words
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


def correction(text: str, answer: str) -> Correction | None:
    """What a clause asks for, when it has one of the forms. `answer` is that of the agent before it."""
    if not _any_form().match(text):
        return None
    for pattern, form in _forms():
        if not _has_what_it_needs(form, answer):
            continue
        match = pattern.match(text)
        if match is None or not _counts(match, form, text):
            continue
        words = _words_of(match)
        trigger = str(form.get("trigger", "")).format(**words)
        is_permission = bool(form.get("is_permission"))
        return Correction(as_instruction(form["says"].format(**words)), _about(trigger), is_permission)
    return None


def _has_what_it_needs(form: dict[str, Any], answer: str) -> bool:
    """ "Too long" after a short answer speaks of what it says, such as a flight of nine hours."""
    needs = form.get("needs", ())
    return bool(answer or not needs) and ("long answer" not in needs or len(answer.split()) >= _LONG_ANSWER)


def _counts(match: Match[str], form: dict[str, Any], text: str) -> bool:
    groups = match.groupdict()
    has_verb = "verb" not in groups or is_verb(groups["verb"])
    has_verb &= "done" not in groups or was_done(groups["done"])
    if form.get("is_strict") and not FORMS["strong_marker"].search(text):
        return False
    return has_verb and (not form.get("marker") or bool(FORMS["marker"].search(text)))


def _words_of(match: Match[str]) -> dict[str, str]:
    words = {
        name: _uncapitalised(match, name) if match.start(name) == 0 else (value or "").strip()
        for name, value in match.groupdict().items()
    }
    if "done" in words:
        words["verb"] = words["done"]
    if "verb" in words:
        words["verb"] = base_form(words["verb"])
        words["rest"] = " " + words["rest"]
    if words.get("how"):
        words["how"] += " " if "verb" in words else ""
    if "tongue" in words:
        words["tongue"] = (words["tongue"] or words.get("tongue2", "")).capitalize()
    kept = FORMS["without"].search(match.group())
    return {**words, "kept": f" {kept['kept']}" if kept and kept["kept"] not in words.get("rest", "") else ""}


def _uncapitalised(match: Match[str], name: str) -> str:
    """What began a sentence begins none in the instruction."""
    return match[name][:1].lower() + match[name][1:].strip()


def _about(trigger: str) -> str:
    return generalised(third_person_pronouns(trigger))
