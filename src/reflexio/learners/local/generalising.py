"""One rule out of many, without a model: the clearest wording, and what the others add to it."""

import re
from collections.abc import Iterator, Sequence

from reflexio.learners.local.privacy import details, is_private, unshared, without
from reflexio.learners.local.sentences import split
from reflexio.learners.local.words import figures, meaning, shared
from reflexio.models.learned import Gathered, Rule
from reflexio.models.learning import Learning

LONGEST = 1_200
MOST_ADDED = 3
SAME, ELSE = 0.5, 0.25
_JOINT = re.compile(r"(?:,\s+and|;)\s+(?:also\s+|then\s+)?", re.I)
WHY = "Several users taught this."


def generalise(gathered: Gathered) -> Rule | None:
    members = gathered.members
    private = unshared(each.text for each in members)
    base = min(members, key=lambda each: (is_private(each.content, private), len(each.content) > LONGEST))
    content = _joined([*_plain(base.content, private), *_added(base, members, private)])
    rule = Rule(content, _trigger(base, members, private), _why(base, private))
    return None if not content or _is_known(rule, gathered, private) else rule


def _plain(text: str, private: frozenset[str]) -> list[str]:
    """The sentences without private details, or all of them with those left out."""
    said = split(text)
    kept = [each for each in said if not is_private(each, private)]
    return kept or [without(each, private) for each in said]


def _added(base: Learning, members: Sequence[Learning], private: frozenset[str]) -> list[str]:
    """Sentences that say something else, those that several say first."""
    found = [sentence for each in members if each is not base for sentence in _others(each, private)]
    echoes = {
        sentence: sum(shared(meaning(sentence), meaning(each.content)) >= SAME for each in members)
        for sentence in found
    }
    said = meaning(base.content)
    added: list[str] = []
    for sentence in sorted(dict.fromkeys(found), key=lambda each: -echoes[each]):
        words = meaning(sentence)
        if len(added) < MOST_ADDED and len(words) >= 2 and len(words & said) <= ELSE * len(words):
            added.append(sentence)
            said |= words
    return added


def _others(member: Learning, private: frozenset[str]) -> Iterator[str]:
    """What it says, also of a sentence that only begins like the others."""
    for sentence in split(member.content):
        for part in dict.fromkeys([sentence, *_JOINT.split(sentence)]):
            if not is_private(part, private):
                yield part[:1].upper() + part[1:]


def _joined(sentences: Sequence[str]) -> str:
    """As many as there is room for, each ended."""
    kept: list[str] = []
    for each in sentences:
        ended = each if each.endswith((".", "!", "?", "…", "。", "！", "？", ":", ";")) else f"{each}."
        if kept and len(" ".join([*kept, ended])) > LONGEST:
            break
        kept.append(ended[:LONGEST])
    return " ".join(kept) if len(kept) > 1 else (sentences[0][:LONGEST] if sentences else "")


def _trigger(base: Learning, members: Sequence[Learning], private: frozenset[str]) -> str:
    said = [each.trigger for each in (base, *members) if each.trigger]
    plain = next((each for each in said if not is_private(each, private)), None)
    return plain or (without(said[0], private) if said else "")


def _why(base: Learning, private: frozenset[str]) -> str:
    return base.rationale if base.rationale and not is_private(base.rationale, private) else WHY


def _is_known(rule: Rule, gathered: Gathered, private: frozenset[str]) -> bool:
    """Whether a rule that stands says all of it, and nothing that nobody else should know."""
    before = [gathered.before] if gathered.before else []
    common = {detail for each in gathered.members for detail in details(each.text)} - private
    return any(
        meaning(rule.content) <= meaning(each.content)
        and figures(rule.content) <= figures(each.content)
        and (not rule.trigger or shared(meaning(rule.trigger), meaning(each.trigger)) >= SAME)
        and (each in gathered.known or details(each.content) <= common)
        for each in (*before, *gathered.known)
    )
