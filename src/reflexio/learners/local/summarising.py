"""One agent playbook from a cluster, without a model: the clearest wording, and what the other members add to it.

What only one member knows is left out: names, numbers and addresses. What several share is common knowledge. Names are
recognised by their capitals; in German every noun has one, so that only numbers and addresses are recognised.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from reflexio.language.words import content_words, figures, overlap
from reflexio.learners.local.sentences import CUES, MOST_READ, sentence_spans, split_sentences
from reflexio.models.extraction import ClusterToSummarise, PlaybookText
from reflexio.models.learning import Learning

LONGEST = 1_200
LONGEST_TRIGGER = 200
MOST_ADDED = 3
SAME, NEW = 0.5, 0.25
SAME_MATTER = 0.3
"""Share of the words of a member and of the base that they have in common."""
GERMAN_SHARE = 0.15
RATIONALE, RATIONALE_OF_ONE = "Several users taught this.", "One user taught this."

_ENGLISH_CASE = re.compile(r"(?:The (?:user|agent)|An?|Some\w*|People)\b")
_JOINT = re.compile(r"(?:,\s+and|;)\s+(?:also\s+|then\s+)?", re.I)
# Bounded: a word of a megabyte must not be read again from each of its letters.
_ADDRESS = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}|\bhttps?://\S+|\bwww\.\S+", re.I)
_NUMBER = re.compile(r"[#№]?\+?\d(?:[\d.,:/ -]{0,30}\d)?")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_NAME = re.compile(r"[A-ZÀ-ÖØ-ÞĀ-Ž][\w'’-]+")
_OMITTED = "…"


def summarise(cluster: ClusterToSummarise) -> PlaybookText | None:
    """The agent playbook for a cluster; None when a known one says it already."""
    members = cluster.members
    private = private_details(member.text for member in members)
    base = min(members, key=lambda member: (_is_private(member.content, private), len(member.content) > LONGEST))
    content = _join([*_public_sentences(base.content, private), *_additions(base, members, private)])
    trigger = _trigger([member.trigger for member in (base, *members) if member.trigger], private)
    has_rationale = base.rationale and not _is_private(base.rationale, private)
    is_of_one = len({member.user_id for member in members}) == 1
    made_up = RATIONALE_OF_ONE if is_of_one else RATIONALE
    rule = PlaybookText(content, trigger, base.rationale if has_rationale else made_up)
    return None if not content or _is_known(rule, cluster, private) else rule


def _trigger(triggers: Sequence[str], private: frozenset[str]) -> str:
    """The case of the base, and another one that its members had: the rule was taught for both."""
    public = [text for text in triggers if not _is_private(text, private)]
    if not public:
        return _without(triggers[0], private) if triggers else ""
    first = public[0]
    other = next((text for text in public if _is_other_case(text, first)), "")
    return f"{first}, or {other[:1].lower()}{other[1:]}" if other else first


def _is_other_case(trigger: str, first: str) -> bool:
    if len(first) + len(trigger) > LONGEST_TRIGGER or not (_ENGLISH_CASE.match(first) and _ENGLISH_CASE.match(trigger)):
        return False
    return bool(content_words(trigger)) and overlap(content_words(trigger), content_words(first)) < SAME


def _public_sentences(text: str, private: frozenset[str]) -> list[str]:
    """The sentences without private details, or all of them with those left out."""
    sentences = split_sentences(text)
    public = [sentence for sentence in sentences if not _is_private(sentence, private)]
    return public or [_without(sentence, private) for sentence in sentences]


def _additions(base: Learning, members: Sequence[Learning], private: frozenset[str]) -> list[str]:
    """Sentences of other members that say something new, those that several members say first.

    A member adds to a matter that it shares with the base: one rule is about one matter, and says it once.
    """
    matter = content_words(base.content)
    related = [
        member
        for member in members
        if member is not base and overlap(matter, content_words(member.content)) >= SAME_MATTER
    ]
    parts = [part for member in related for part in _public_parts(member, private)]
    support = {
        part: sum(overlap(content_words(part), content_words(member.content)) >= SAME for member in members)
        for part in parts
    }
    known = content_words(base.content)
    added: list[str] = []
    for part in sorted(support, key=lambda part: -support[part]):
        words = content_words(part)
        if len(added) < MOST_ADDED and len(words) >= 2 and len(words & known) <= NEW * len(words):
            added.append(part)
            known |= words
    return added


def _public_parts(member: Learning, private: frozenset[str]) -> Iterator[str]:
    """The sentences of a member, and the parts of a sentence that only begins like those of others."""
    for sentence in split_sentences(member.content):
        for part in dict.fromkeys([sentence, *_JOINT.split(sentence)]):
            if not _is_private(part, private):
                yield part[:1].upper() + part[1:]


def _join(sentences: Sequence[str]) -> str:
    """As many sentences as there is room for, each with its full stop."""
    kept: list[str] = []
    for sentence in sentences:
        ended = sentence if sentence.endswith((".", "!", "?", "…", "。", "！", "？", ":", ";")) else f"{sentence}."
        if kept and len(" ".join([*kept, ended])) > LONGEST:
            break
        kept.append(ended[:LONGEST])
    return " ".join(kept) if len(kept) > 1 else (sentences[0][:LONGEST] if sentences else "")


def _is_known(rule: PlaybookText, cluster: ClusterToSummarise, private: frozenset[str]) -> bool:
    """Whether an existing agent playbook says all of it, and nothing private."""
    earlier = [cluster.before] if cluster.before else []
    common = {detail for member in cluster.members for detail in details(member.text)} - private
    return any(
        content_words(rule.content) <= content_words(known.content)
        and figures(rule.content) <= figures(known.content)
        and (not rule.trigger or overlap(content_words(rule.trigger), content_words(known.trigger)) >= SAME)
        and (known in cluster.known or details(known.content) <= common)
        for known in (*earlier, *cluster.known)
    )


def private_details(texts: Iterable[str]) -> frozenset[str]:
    """The details that only one of the texts has."""
    read = [text[:MOST_READ] for text in texts]
    everything = " ".join(read)
    is_german = len(CUES["german"].findall(everything)) > GERMAN_SHARE * len(_WORD.findall(everything))
    counts = Counter(detail for text in read for detail in details(text, with_names=not is_german))
    words = [{word.lower() for word in _WORD.findall(text)} for text in read]
    return frozenset(
        detail for detail, count in counts.items() if count == 1 and sum(detail in held for held in words) < 2
    )


def details(text: str, *, with_names: bool = True) -> set[str]:
    """Addresses, numbers, and capitalised words that do not begin a sentence."""
    text = text[:MOST_READ]
    parts = {address.lower() for address in _ADDRESS.findall(text)}
    rest = _ADDRESS.sub(" ", text)
    parts |= {_digits(number) for number in _NUMBER.findall(rest)}
    for start, end in sentence_spans(rest) if with_names else ():
        first = _WORD.search(rest, start, end)
        parts |= {name.group().lower() for name in _NAME.finditer(rest, first.end() if first else start, end)}
    return parts


def _digits(number: str) -> str:
    return re.sub(r"\D", "", number)


def _is_private(text: str, private: frozenset[str]) -> bool:
    return bool(details(text) & private) or any(word.lower() in private for word in _NAME.findall(text))


def _without(text: str, private: frozenset[str]) -> str:
    """The text with its private details left out."""

    def omit(match: re.Match[str]) -> str:
        detail = match.group()
        return _OMITTED if detail.lower() in private or _digits(detail) in private - {""} else detail

    for pattern in (_ADDRESS, _NUMBER, _NAME):
        text = pattern.sub(omit, text)
    return re.sub(rf"{_OMITTED}(?:[\s,]+{_OMITTED})+", _OMITTED, text)
