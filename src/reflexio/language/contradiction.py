"""Whether two texts contradict each other, by rules over their words.

A text is read as claims: what is so or is to be done, and what is not, in the words that carry meaning, cut into the
matter itself and its details ("offer a refund | for late deliveries"); and what is to come before what. Two claims
contradict each other when they speak of the same matter and one of them says no, or one has the opposite word; not
when both. Of two statements about one user, the newer also replaces the older where it names another value of what a
person has one of. The words are English, with the negations of some other languages.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache

from reflexio.language.words import CUES, content_words, figures, is_negation, is_negative, overlap, root, words

SAME_MATTER = 0.7  # of the words of two claims, by Dice
RELATED = 0.5  # cosine below which two statements are about different things
ALIKE = 0.6  # cosine from which two instructions may differ in a value only, and overlap of words that say the same
LONGEST_VALUE = 3  # words
MOST_READ = 10_000  # characters

_SPACES = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\n[\s]+")
_SENTENCE = re.compile(r"(?<![.!?;\n])[.!?;\n]+(?=\s|$)|\s[-–—]\s|\(?\b\d{1,2}[.)]\s")
_FIGURES = re.compile(r"\d[\d.,:]*")
_AND = re.compile(r"\s+and\s+", re.I)

Words = frozenset[str]
_NONE: Words = frozenset()


@cache
def _opposites() -> dict[str, Words]:
    """By stem: the stems that say the opposite."""
    opposites: dict[str, Words] = {}
    for pair in CUES.data["opposites"].split(","):
        one, other = map(root, pair.split())
        opposites[one] = opposites.get(one, _NONE) | {other}
        opposites[other] = opposites.get(other, _NONE) | {one}
    return opposites


@cache
def _single_valued() -> list[tuple[str, re.Pattern[str]]]:
    """What a person has one of: its name, and the pattern that finds its value."""
    return [(name, CUES.compile(pattern)) for name, pattern in CUES.data["single_valued"]]


@cache
def _exclusive() -> list[tuple[re.Pattern[str], re.Pattern[str]]]:
    return [(CUES.compile(one), CUES.compile(other)) for one, other in CUES.data["exclusive"]]


@cache
def _silent_words() -> Words:
    lists = "function_words", "prepositions", "refusals", "light_verbs", "light_words"
    return _NONE.union(*(CUES.lists[name] for name in lists))


def contradicts(one: str, other: str) -> bool:
    """Whether two texts cannot both hold or be followed. The order of the two makes no difference.

    >>> contradicts("Always ask for the order number.", "Do not ask for the order number.")
    True
    >>> contradicts("Avoid jargon.", "Do not use jargon.")
    False
    """
    this, that = _read(one), _read(other)
    return _are_claims_opposed(this, that) or any(
        min(_dice(first, later), _dice(then, sooner)) >= SAME_MATTER
        for first, then in this.sequences
        for sooner, later in that.sequences
    )


def replacement(newer: str, older: str, similarity: float) -> str:
    """Why a newer statement about a user replaces an older one; empty when both can hold.

    The reason names no value of the user: it stays in the lineage after they are erased.

    >>> replacement("The user moved to Porto.", "The user lives in Lisbon.", 0.4)
    'another home was named'
    """
    newer, older = _without_times(newer), _without_times(older)
    for name, pattern in _single_valued():
        if _is_other_value(pattern.search(newer), pattern.search(older)):
            return f"another {name} was named"
    if _takes_back(newer, older):
        return "it no longer holds"
    if _exclude_each_other(newer, older):
        return "the two exclude each other"
    if similarity < RELATED:
        return ""
    if overlap(content_words(newer), content_words(older)) >= ALIKE:
        if contradicts(newer, older):
            return "one says yes and the other no"
        now, before = figures(newer), figures(older)
        if now and before and not now & before and _says_the_same_but_figures(newer, older):
            return "the figure changed"
    return _other_choice(CUES["choice"].search(newer), CUES["choice"].search(older))


def _takes_back(newer: str, older: str) -> bool:
    """Whether the newer statement says that the older one has ended: "switched from Acme"."""
    for ended, held in _taken_back():
        if (match := ended.search(newer)) and held.search(older) and not ended.search(older):
            gone = content_words(match["gone"])
            if gone and gone <= content_words(older):
                return True
    return False


@cache
def _taken_back() -> list[tuple[re.Pattern[str], re.Pattern[str]]]:
    return [(CUES.compile(ended), CUES.compile(held)) for ended, held in CUES.data["taken_back"]]


def _without_times(text: str) -> str:
    """Without "now" and "these days", and with "would rather" as "prefers"."""
    spaced = " ".join(text[:MOST_READ].replace("’", "'").split())
    return CUES["rather"].sub(r"prefers \g<this> over \g<that>", CUES["time_of_change"].sub("", spaced))


def _says_the_same_but_figures(newer: str, older: str) -> bool:
    """Two children are no changed mind: what is said apart from the figures is the same."""
    now, before = (content_words(_FIGURES.sub(" ", text)) for text in (newer, older))
    return len(now ^ before) <= 1


def _exclude_each_other(newer: str, older: str) -> bool:
    """Whether both cannot be true of one person, as "is vegetarian" and "eats meat"."""
    if is_negative(words(newer)) or is_negative(words(older)):
        return False
    return any(
        (one.search(newer) and other.search(older)) or (other.search(newer) and one.search(older))
        for one, other in _exclusive()
    )


def instruction_replacement(newer: str, older: str, similarity: float) -> str:
    """Why a newer instruction replaces an older one that is alike in all but a few words: "prices in euros", "prices
    in dollars". Empty when both can be kept."""
    if contradicts(newer, older):
        return "one says yes and the other no"
    for pattern in _ways_to_answer():
        if _is_other_value(pattern.search(newer), pattern.search(older)):
            return "another way to answer was named"
    if max(similarity, _dice(content_words(newer), content_words(older))) < ALIKE:
        return ""
    if is_negative(words(newer)) or is_negative(words(older)) or CUES["adding"].search(newer):
        return ""
    now, before = newer.lower().rstrip(".!").split(), older.lower().rstrip(".!").split()
    first = _common_beginning(now, before)
    last = _common_beginning(now[first:][::-1], before[first:][::-1])
    value, earlier = now[first : len(now) - last], before[first : len(before) - last]
    is_value = value and earlier and max(len(value), len(earlier)) <= LONGEST_VALUE and set(value).isdisjoint(earlier)
    return "another value was named" if is_value and first + last > 1 else ""


@cache
def _ways_to_answer() -> list[re.Pattern[str]]:
    return [CUES.compile(pattern) for pattern in CUES.data["ways_to_answer"]]


def _common_beginning(one: list[str], other: list[str]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _is_other_value(now: re.Match[str] | None, before: re.Match[str] | None) -> bool:
    if not (now and before) or not _is_same_subject(now, before):
        return False
    value, earlier = now["value"].strip(), before["value"].strip()
    if value.lower() == earlier.lower():
        return False
    place, earlier_place = CUES["qualifier"].split(value, 1), CUES["qualifier"].split(earlier, 1)
    if content_words(" ".join(place[1:])) != content_words(" ".join(earlier_place[1:])):
        return False  # "in Lisbon during the week": another of the same kind beside it
    countries = [CUES["country"].match(text) is not None for text in (value, earlier)]
    if countries[0] != countries[1]:
        return False
    if (new := figures(value)) and (old := figures(earlier)):
        return not new & old
    return not overlap(content_words(place[0]), content_words(earlier_place[0]))


def _is_same_subject(now: re.Match[str], before: re.Match[str]) -> bool:
    """Whether two statements are about the same thing of the same person: "their daughter Mia" is another one."""
    subjects = [content_words(match.groupdict().get("subject") or "") for match in (now, before)]
    heads = [words(match.string[: match.start()]) for match in (now, before)]
    if any(is_negative(head) for head in heads):
        return False
    return subjects[0] == subjects[1] and content_words(" ".join(heads[0])) == content_words(" ".join(heads[1]))


def _other_choice(now: re.Match[str] | None, before: re.Match[str] | None) -> str:
    """ "Prefers tea" and "prefers coffee": of a few words each, they are two answers to one question."""
    if not (now and before):
        return ""
    is_short = max(len(content_words(now["value"])), len(content_words(before["value"]))) <= 2
    chosen, earlier = CUES["over"].split(now["value"])[0], CUES["over"].split(before["value"])[0]
    is_other = not content_words(chosen) & content_words(earlier) or contradicts(chosen, earlier)
    return "another choice was named" if is_short and is_other else ""


@dataclass(frozen=True, slots=True)
class _Claim:
    """What is asserted, or negated. `condition` and `details` tell apart claims about the same matter."""

    is_negated: bool
    matter: Words
    details: Words
    condition: Words

    @property
    def words(self) -> Words:
        return self.matter | self.details


@dataclass(frozen=True, slots=True)
class _Reading:
    """The claims of a text; what it puts before what; and all words, to see quickly that two texts cannot disagree."""

    claims: tuple[_Claim, ...]
    sequences: tuple[tuple[Words, Words], ...]
    asserted: Words
    negated: Words
    opposites: Words

    @classmethod
    def of(cls, claims: Iterable[_Claim], sequences: Iterable[tuple[Words, Words]]) -> "_Reading":
        stated = tuple(dict.fromkeys(claim for claim in claims if claim.matter))
        asserted = _NONE.union(*(claim.words for claim in stated if not claim.is_negated))
        negated = _NONE.union(*(claim.words for claim in stated if claim.is_negated))
        opposites = _NONE.union(*(_opposites().get(word, _NONE) for word in asserted | negated))
        return cls(stated, tuple(pair for pair in sequences if all(pair)), asserted, negated, opposites)


def _are_claims_opposed(this: _Reading, that: _Reading) -> bool:
    if (
        this.asserted.isdisjoint(that.negated)
        and this.negated.isdisjoint(that.asserted)
        and this.opposites.isdisjoint(that.asserted)
        and this.opposites.isdisjoint(that.negated)
    ):
        return False
    return any(_is_opposed(claim, against) for claim in this.claims for against in that.claims)


def _is_opposed(one: _Claim, other: _Claim) -> bool:
    """Whether the claims differ in an odd number of negations and opposite words, and speak of the same case."""
    opposites = _opposites()
    turned = frozenset(
        word
        for word in one.words - other.words
        if any(opposite in other.words and opposite not in one.words for opposite in opposites.get(word, _NONE))
    )
    if (one.is_negated != other.is_negated) == (len(turned) % 2 == 1):
        return False
    # "If the order is late", "if the order is on time". Without a common word they may be one case in two wordings.
    here, there = one.condition, other.condition
    if here & there and here - there and there - here:
        return False
    apart = turned.union(*(opposites[word] for word in turned))
    if _dice(one.words - apart, other.words - apart) >= SAME_MATTER:
        return True
    if one.details and other.details and not one.details & other.details:
        return False
    return _dice(one.matter - apart, other.matter - apart) >= SAME_MATTER


def _dice(one: Words, other: Words) -> float:
    return 2 * len(one & other) / (len(one) + len(other)) if one or other else 1.0


@lru_cache(maxsize=1 << 15)
def _read(text: str) -> _Reading:
    # Long gaps would be read again and again.
    spaced = _LINES.sub("\n", _SPACES.sub(" ", text[:MOST_READ].replace("’", "'")))
    plain = CUES["no_longer"].sub(" not ", CUES["time_of_change"].sub(" ", spaced))
    plain = CUES["leaving"].sub(" avoid ", CUES["harmless"].sub(" ", plain))
    claims: list[_Claim] = []
    sequences: list[tuple[Words, Words]] = []
    for sentence in _SENTENCE.split(plain):
        match = CUES["condition"].search(sentence)
        condition = _meaning(words(match["before"] or match["after"] or "")) if match else _NONE
        main = f"{sentence[: match.start()]} {sentence[match.end() :]}" if match else sentence
        for clause in [] if CUES["report"].search(main) else CUES["clause"].split(main):
            chosen_first = CUES["instead_first"].sub(
                r"\2 instead of \1", CUES["preferred"].sub(r"\1 instead of ", clause)
            )
            stated, ordered = _read_clause(chosen_first, condition)
            claims += stated
            sequences += ordered
    return _Reading.of(claims, sequences)


def _read_clause(clause: str, condition: Words) -> tuple[list[_Claim], list[tuple[Words, Words]]]:
    """What a clause asserts and negates, and what it puts before what."""
    link = CUES["link"].search(clause)
    head, tail = (clause[: link.start()], clause[link.end() :]) if link else (clause, "")
    how = link.lastgroup if link else None
    sequence = _meaning(words(head)), _meaning(words(tail))
    if is_negative(words(head)):
        if how == "before" or (link and link.group().strip().lower() == "without"):
            return [_claim(tail, condition)], [sequence[::-1]]  # "do not refund before you have checked": check first
        claims = [_claim(clause if how == "after" else head, condition)]
        return claims + ([_claim(tail, condition)] if how in ("instead", "rather") else []), []
    parts = _AND.split(head)
    claims = [_claim(part, condition) for part in ([head, *parts] if len(parts) > 1 else parts)]
    match how:
        case "instead" | "rather":
            return [*claims, _claim(tail, condition, is_negated=True)], []
        case "before":
            return claims, [sequence]
        case "after":
            return claims, [sequence[::-1]]
    return claims, []


def _claim(text: str, condition: Words, *, is_negated: bool = False) -> _Claim:
    """A no counts where it stands in the matter; in the details it is about those: "refund what was not sent".

    The matter ends at the first preposition that does not belong to the verb, as that of "ask for" does.
    """
    tokens = words(text)
    carrying = 0
    end = len(tokens)
    for place, word in enumerate(tokens):
        if word in CUES.lists["prepositions"] and carrying > 1:
            end = place
            break
        carrying += word in CUES.lists["light_verbs"] or not _is_silent(word)
    matter = tokens[:end]
    return _Claim(is_negated ^ is_negative(matter), _meaning(matter), _meaning(tokens[end:]), condition)


def _meaning(tokens: list[str]) -> Words:
    return frozenset(root(word) for word in tokens if not _is_silent(word))


def _is_silent(word: str) -> bool:
    return word in _silent_words() or is_negation(word)
