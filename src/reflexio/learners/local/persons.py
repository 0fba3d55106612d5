"""From what a user says of themselves to what can be said of them: "I'm vegetarian" -> "The user is vegetarian"."""

import re

SUBJECT = "The user"

_SAME_FOR_ALL = """
    can could will would shall should may might must ought cannot used had was did went got saw came took made gave
    told said felt kept left lost met ran sent spent thought began broke brought bought chose fell found grew heard
    held knew led read sat slept spoke stood taught understood wore won wrote
"""
_UNCHANGED = frozenset(_SAME_FOR_ALL.split())
_IRREGULAR = {"am": "is", "have": "has", "do": "does", "don't": "doesn't", "haven't": "hasn't", "ain't": "isn't"}
_ADVERBS = re.compile(
    r"(?:\w+ly|also|always|never|often|sometimes|still|just|even|already|now|then|almost|rather|much|too|both|"
    r"currently|most|kind of|sort of|far|not)\b",
    re.I,
)
_JOINED = re.compile(
    r"\b((?:and|or|but) (?:(?:never|always|rarely|only|usually|often|also|don't) )?)"
    r"(prefer|avoid|like|love|hate|dislike|enjoy|use|find|don't|eat|drink|work|live|own|have)\b(?! to be\b)"
)
_TRAILING = re.compile(r",?\s+(?:though|actually|anyway|tbh|lol|as well)$", re.I)
_CONTRACTED = [
    (re.compile(r"\bI['’]m\b", re.I), "I am"),
    (re.compile(r"\bI['’]ve\b", re.I), "I have"),
    (re.compile(r"\bI['’]ll\b", re.I), "I will"),
    (re.compile(r"\bI['’]d (?=(?:rather|prefer|like|love|be)\b)", re.I), "I would "),
    (re.compile(r"\bI['’]d\b", re.I), "I had"),
    (re.compile(r"’"), "'"),
]
_OTHERS = [
    (re.compile(r"\bmyself\b", re.I), "themselves"),
    (re.compile(r"\bmine\b", re.I), "theirs"),
    (re.compile(r"\bmy\b", re.I), "their"),
    (re.compile(r"\bme\b"), "them"),
    (re.compile(r"\bI am\b"), "they are"),
    (re.compile(r"\bI was\b"), "they were"),
    (re.compile(r"\bI\b"), "they"),
    (re.compile(r"\bour(s?)\b", re.I), r"their\1"),
    (re.compile(r"\bwe\b", re.I), "they"),
    (re.compile(r"\bus\b"), "them"),
]
_SPOKEN_TO = [
    (re.compile(r"\bmyself\b", re.I), "the user"),
    (re.compile(r"\bmine\b", re.I), "the user's"),
    (re.compile(r"\b(?:my|our)\b", re.I), "the user's"),
    (re.compile(r"\b(?:me|us)\b"), "the user"),
    (re.compile(r"\bI am\b"), "the user is"),
    (re.compile(r"\bI have\b"), "the user has"),
    (re.compile(r"\bI (?=don't\b)"), "the user "),
    (re.compile(r"\b(?:I|we)\b"), "the user"),
]


def of_the_user(clause: str) -> str:
    """A first-person clause, told of the user. Begins with "I", "my" or any other subject."""
    text = _spelt(clause).strip(" ,;:-–—")
    if found := re.match(r"I\s+", text):
        return _sentence(f"{SUBJECT} {_others(_conjugated(text[found.end() :]))}")
    if found := re.match(r"(?:my|our)\s+", text, re.I):
        return _sentence(f"{SUBJECT}'s {_others(text[found.end() :])}")
    if re.match(r"(?:can't|not (?:really )?(?:a|into))\b", text):
        return of_the_user(f"I {'am ' if text.startswith('not') else ''}{text}")
    return to_the_agent(text)


def theirs(text: str) -> str:
    """Pronouns turned, verbs left: "reset my password" -> "reset their password"."""
    return _others(_spelt(text)).strip()


def to_the_agent(clause: str) -> str:
    """An order as an instruction that anybody can read: "call me Bo" -> "Call the user Bo"."""
    text = _spelt(clause).strip(" ,;:-–—")
    for word, instead in _SPOKEN_TO:
        text = word.sub(instead, text)
    text = re.sub(r"\bthe user (want|need|prefer|ask|say|like|have)\b", r"the user \1s", text).replace("haves", "has")
    return _sentence(text)


def _spelt(clause: str) -> str:
    clause = re.sub(r"(?<![\w.])i(?=['’ ]|$)", "I", clause)
    for contracted, full in _CONTRACTED:
        clause = contracted.sub(full, clause)
    return clause


def _others(text: str) -> str:
    for word, instead in _OTHERS:
        text = word.sub(instead, text)
    return text


def _conjugated(predicate: str) -> str:
    """The first verb in the third person, and those joined to it that are plainly verbs."""
    before = ""
    while found := _ADVERBS.match(predicate):
        before += predicate[: found.end()] + " "
        predicate = predicate[found.end() :].lstrip()
    verb, space, rest = predicate.partition(" ")
    return before + _third(verb) + space + _JOINED.sub(lambda found: found[1] + _third(found[2]), rest)


def _third(verb: str) -> str:
    plain = verb.lower()
    if plain in _IRREGULAR:
        return _IRREGULAR[plain]
    is_past = plain.endswith("ed") and not plain.endswith(("eed", "shed", "embed"))
    if plain in _UNCHANGED or is_past or plain.endswith("n't") or not plain.isalpha():
        return verb
    if plain.endswith(("s", "x", "z", "ch", "sh", "o")):
        return verb + "es"
    return verb[:-1] + "ies" if re.search(r"[^aeiou]y$", plain) else verb + "s"


def _sentence(text: str) -> str:
    text = _TRAILING.sub("", re.sub(r"\s+", " ", text).strip(" ,;:-–—!"))
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "…", "”")) else text + "."
