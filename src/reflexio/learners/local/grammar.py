"""From the first person to the third, and from other forms of a verb to the one of an order."""

import re
from functools import cache

from reflexio.learners.local.sentences import CUES

_IRREGULAR = {
    "am": "is", "are": "is", "were": "was", "have": "has", "do": "does", "don't": "doesn't", "haven't": "hasn't",
    "aren't": "isn't", "weren't": "wasn't", "ain't": "isn't", "go": "goes",
}  # fmt: skip
_TRAILING = re.compile(
    r"(?:,?\s+(?:though|actually|anyway|tbh|lol|as well|btw|by the way|please|thanks|thank you))+$", re.I
)
_FIRST_PERSON = re.compile(r"(?:I|we|We)\s+")


@cache
def _substitutions(name: str) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(rf"\b{words}\b"), instead) for words, instead in CUES.data["substitutions"][name]]


def in_third_person(clause: str) -> str:
    """A first-person clause as a sentence about the user: "I'm vegetarian" becomes "The user is vegetarian."."""
    text = _without_contractions(clause).strip(" ,;:-–—")
    if subject := _FIRST_PERSON.match(text):
        return _as_sentence(_no_longer(f"The user {third_person_pronouns(_conjugated(text[subject.end() :]))}"))
    if subject := re.match(r"(?:my|our)\s+", text, re.I):
        return _as_sentence(f"The user's {third_person_pronouns(text[subject.end() :])}")
    if re.match(r"(?:can't|not (?:really )?(?:a|into))\b", text):
        return in_third_person(f"I {'am ' if text.startswith('not') else ''}{text}")
    return as_instruction(text)


def _no_longer(text: str) -> str:
    """ "is not vegetarian anymore" as "is no longer vegetarian"."""
    if ended := CUES["ended"].match(text):
        verb = "is" if ended["is2"] is not None else ended["is"] or ended["can"]
        before = f"{verb} no longer" if verb else "no longer"
        first, space, rest = (ended["what"]).partition(" ")
        return f"The user {before} {first if verb else _conjugated_verb(first)}{space}{rest}"
    return text


def third_person_pronouns(text: str) -> str:
    """Only the pronouns changed: "reset my password" becomes "reset their password"."""
    return _substitute(_without_contractions(text), "third_person").strip()


def as_instruction(clause: str) -> str:
    """An order as an instruction that anybody can read: "call me Bo" becomes "Call the user Bo."."""
    text = _without_contractions(clause).strip(" ,;:-–—")
    first = CUES["first_mention"].search(text)
    end = first.end() if first else len(text)
    named = _substitute(CUES["i_and_verb"].sub(_about_the_user, text[:end]), "to_the_agent")
    return _as_sentence(named + _substitute(text[end:], "third_person"))


def as_act_of_agent(clause: str) -> str:
    """What "you" do, as a case: "you book a flight" and "booking a flight" become "The agent books a flight"."""
    text = as_instruction(re.sub(r"^you\s+", "", _without_contractions(clause))).rstrip(".")
    verb, space, rest = text.partition(" ")
    verb = verb.lower()
    if verb.endswith("ing"):
        verb = base_form(verb)
        if verb.endswith("ing"):
            return ""
    rest = CUES["anything"].sub("something", rest)
    return f"The agent {_conjugated_verb(verb)}{space}{rest}".replace("yourself", "itself")


def _about_the_user(match: re.Match[str]) -> str:
    return f"the user {match['adverb'] or ''}{_conjugated_verb(match['verb'])}"


def _without_contractions(clause: str) -> str:
    return _substitute(re.sub(r"(?<![\w.])i(?=['’ ]|$)", "I", clause).replace("’", "'"), "contractions")


def _substitute(text: str, name: str) -> str:
    for pattern, replacement in _substitutions(name):
        text = pattern.sub(replacement, text)
    return text


def _conjugated(predicate: str) -> str:
    """The first verb in the third person, and those joined to it that are plainly verbs."""
    before = ""
    while adverb := CUES["adverb"].match(predicate):
        before += predicate[: adverb.end()] + " "
        predicate = predicate[adverb.end() :].lstrip()
    verb, space, rest = predicate.partition(" ")
    rest = CUES["joined_verb"].sub(lambda join: join[1] + _conjugated_verb(join[2]), rest)
    return before + _conjugated_verb(verb) + space + rest


def _conjugated_verb(verb: str) -> str:
    plain = verb.lower()
    if plain in _IRREGULAR:
        return _IRREGULAR[plain]
    is_past = plain.endswith("ed") and not plain.endswith(("eed", "shed", "embed"))
    if plain in CUES.lists["same_in_third_person"] or is_past or plain.endswith("n't") or not plain.isalpha():
        return verb
    if plain.endswith(("s", "x", "z", "ch", "sh", "o")):
        return verb + "es"
    return verb[:-1] + "ies" if re.search(r"[^aeiou]y$", plain) else verb + "s"


def _as_sentence(text: str) -> str:
    text = _TRAILING.sub("", re.sub(r"\s+", " ", text).strip(" ,;:-–—!"))
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "…", "”")) else text + "."


@cache
def _irregular_forms() -> dict[str, str]:
    return dict(pair.split("=") for pair in CUES.lists["irregular_forms"])


def base_form(verb: str) -> str:
    """The form of an order: "asking" and "asked" become "ask". A word that is no known verb stays as it is.

    >>> base_form("checking"), base_form("refunded"), base_form("told"), base_form("neighbours")
    ('check', 'refund', 'tell', 'neighbours')
    """
    plain = verb.lower()
    known = _known_verbs()
    if plain in known:
        return plain
    if plain in _irregular_forms():
        return _irregular_forms()[plain]
    for ending in ("ing", "ed", "d"):
        stem = plain.removesuffix(ending)
        doubled = stem[:-1] if len(stem) > 3 and stem[-1] == stem[-2] else stem
        for base in (stem, stem + "e", doubled, stem[:-1] + "y" if stem.endswith("i") else stem):
            if stem != plain and base in known:
                return base
    return verb


@cache
def _known_verbs() -> frozenset[str]:
    return frozenset((*CUES.lists["verbs"], *CUES.lists["done_verbs"]))


def is_verb(word: str) -> bool:
    """Whether a word can begin an order, in any of its forms."""
    return base_form(word).lower() in CUES.lists["verbs"]


def was_done(word: str) -> bool:
    """Whether a word is the participle of a verb, which says what should have been done."""
    return base_form(word).lower() in _known_verbs()
