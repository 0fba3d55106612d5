"""Whether a statement holds whatever is asked, or bears on some requests only, by the words in it.

What the words leave open is decided by meaning, next to the prototypes: see `retrieval.scope`. The words are those of
the language of the statement, where it is one that is read by rules, and English otherwise.
"""

import re
from pathlib import Path

from reflexio.language.cues import LANGUAGES, LanguageCues, cues_of, folded
from reflexio.language.identify import language_of
from reflexio.language.words import CueFile

CUES = CueFile(Path(__file__).with_name("standing.toml"))
MOST_READ = 1_000  # characters
_QUOTATION = re.compile(r"[„“«](.{1,800})[”“»]")
"""What the user says, in the frame of a learning."""


def fact_holds_always(text: str) -> bool | None:
    """Of a fact about a user; None when its words do not decide.

    >>> fact_holds_always("The user is vegetarian."), fact_holds_always("The user likes jazz.")
    (True, False)
    """
    text = _shortened(text)
    if (language := language_of(text)) in LANGUAGES:
        return _fact_in_language(folded(text), cues_of(language))
    if CUES["how_to_answer"].search(text) or CUES["limits"].search(text):
        return True
    if CUES["preference"].match(text) or CUES["about_others"].match(text):
        return False
    if CUES["circumstances"].search(text):
        return True
    if CUES["passing"].search(text):
        return False
    if CUES["who_the_user_is"].search(text) or CUES["belongings"].search(text):
        return True
    return False if CUES["one_subject"].search(text) else None


def instruction_holds_always(trigger: str, content: str) -> bool | None:
    """Of an instruction; None when its words do not decide.

    >>> instruction_holds_always("", "Never use emojis."), instruction_holds_always("a lamp is returned", "Ask why.")
    (True, False)
    """
    trigger, content = _shortened(trigger), _shortened(content)
    if trigger:
        return bool(CUES["any_request"].match(trigger))
    if (language := language_of(content)) in LANGUAGES:
        return _instruction_in_language(folded(content), cues_of(language))
    if CUES["conditional"].search(content):
        return False
    return True if CUES["how_to_answer"].search(content) or CUES["every_time"].search(content) else None


def _fact_in_language(plain: str, cues: LanguageCues) -> bool | None:
    """Of a fact as the user says it, or as somebody tells it of them."""
    if cues["how_to_answer"].search(plain):
        return True
    if cues["momentary"].search(plain):
        return False
    if said := next((fact for fact in cues.facts if fact.pattern.match(plain)), None):
        return said.is_standing and not cues["passing"].search(plain)
    states, likes = cues["states"].search(plain), cues["likes"].search(plain)
    if likes and (not states or likes.start() < states.start()):
        return False
    return True if states else None


def _instruction_in_language(plain: str, cues: LanguageCues) -> bool | None:
    if cues["for_a_case"].search(plain):
        return False
    if cues["one_off"].search(plain):
        return None
    return True if cues["how_to_answer"].search(plain) or cues["abiding"].search(plain) else None


def is_vital(text: str) -> bool:
    """Whether a statement that always holds may not be missed: how to answer, access, health and diet.

    >>> is_vital("The user is allergic to nuts."), is_vital("The user lives in Oslo.")
    (True, False)
    """
    text = _shortened(text)
    if (language := language_of(text)) in LANGUAGES:
        plain, cues = folded(text), cues_of(language)
        said = quotation[1] if (quotation := _QUOTATION.search(plain)) else plain
        is_limit = any(fact.about in ("health", "diet") and fact.pattern.match(said) for fact in cues.facts)
        return is_limit or bool(cues["how_to_answer"].search(said))
    return bool(CUES["how_to_answer"].search(text) or CUES["limits"].search(text))


def prototypes() -> tuple[list[str], list[str]]:
    """Statements that always hold, and statements that bear on some requests."""
    lists = CUES.data["prototypes"]
    always, relevant = ([line.strip() for line in lists[name].strip().splitlines()] for name in ("always", "relevant"))
    return always, relevant


def _shortened(text: str) -> str:
    return " ".join(text[:MOST_READ].split())
