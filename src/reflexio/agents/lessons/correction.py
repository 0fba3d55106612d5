"""Whether a newer lesson corrects an older one, so that both cannot be followed.

The occasion (task or trigger) is compared by the caller; here only the advice counts. `language.contradiction` decides.
"""

from reflexio.language.contradiction import contradicts, instruction_replacement, replacement

CERTAIN = 1.0  # similarity, as the occasion is known to be the same
LONGEST = 25
"""Words up to which a changed figure is a correction. A long reflection names many figures, most of another matter."""
LONGEST_ADVICE = 40
"""Words up to which a lesson is advice that another one can correct. Longer ones explain what went wrong: they say what
is not so without taking anything back. Of 173 recorded reflections, 24 were taken for corrected without this limit."""


def correction(newer: str, older: str) -> str:
    """Why the newer advice replaces the older one on the same occasion; empty when both can be followed.

    >>> correction("Set the timeout to 60 seconds.", "Set the timeout to 30 seconds.")
    'another value was named'
    """
    is_advice = max(len(newer.split()), len(older.split())) <= LONGEST_ADVICE
    return conflict(newer, older) if is_advice else ""


def conflict(newer: str, older: str) -> str:
    """Why two texts of any length do not say the same on the same occasion; empty when they may."""
    return instruction_replacement(newer, older, CERTAIN) or disagreement(newer, older)


def disagreement(newer: str, older: str) -> str:
    """Why the two cannot both hold, whatever the occasion: a yes against a no, another figure for the same thing.

    Another name alone is none: "Ask Alice" and "Ask Bob" may be about two tasks.
    """
    if contradicts(newer, older):
        return "one says yes and the other no"
    is_long = max(len(newer.split()), len(older.split())) > LONGEST
    return "" if is_long else replacement(newer, older, CERTAIN)
