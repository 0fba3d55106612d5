"""Whether a statement holds whatever is asked, or bears on some requests only, by the words in it.

What the words leave open is decided by meaning, next to the prototypes: see `retrieval.scope`. The words are English.
"""

from pathlib import Path

from reflexio.language.words import CueFile

CUES = CueFile(Path(__file__).with_name("standing.toml"))
MOST_READ = 1_000  # characters


def fact_holds_always(text: str) -> bool | None:
    """Of a fact about a user; None when its words do not decide.

    >>> fact_holds_always("The user is vegetarian."), fact_holds_always("The user likes jazz.")
    (True, False)
    """
    text = _shortened(text)
    if CUES["how_to_answer"].search(text) or CUES["limits"].search(text):
        return True
    if CUES["preference"].match(text) or CUES["passing"].search(text) or CUES["about_others"].match(text):
        return False
    if CUES["who_the_user_is"].search(text):
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
    if CUES["conditional"].search(content):
        return False
    return True if CUES["how_to_answer"].search(content) or CUES["every_time"].search(content) else None


def prototypes() -> tuple[list[str], list[str]]:
    """Statements that always hold, and statements that bear on some requests."""
    lists = CUES.data["prototypes"]
    always, relevant = ([line.strip() for line in lists[name].strip().splitlines()] for name in ("always", "relevant"))
    return always, relevant


def _shortened(text: str) -> str:
    return " ".join(text[:MOST_READ].split())
