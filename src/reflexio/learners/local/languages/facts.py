"""What users say about themselves, in other languages. It is kept in their words, clause by clause."""

from collections.abc import Iterator
from dataclasses import dataclass

from reflexio.language.cues import FactCue, LanguageCues
from reflexio.learners.local.languages.speech import Spoken, as_statement


@dataclass(frozen=True)
class SpokenFact:
    cue: FactCue
    content: str
    spoken: Spoken


def facts(spoken: Spoken) -> Iterator[SpokenFact]:
    """The statements of a sentence about its speaker, each with what belongs to it."""
    cues = spoken.cues
    if spoken.is_masked or cues["no_fact"].search(spoken.plain):
        return
    beginnings = list(_beginnings(spoken.plain, cues))
    for place, (start, cue) in enumerate(beginnings):
        end = beginnings[place + 1][0] if place + 1 < len(beginnings) else len(spoken.plain)
        if aside := cues["other_clause"].search(spoken.plain, start + 1, end):
            end = aside.start()
        elif spoken.is_question and end == len(spoken.plain):
            continue
        if not cues["momentary"].search(spoken.plain, start, end) and not _is_passing(spoken.plain[start:end], cues):
            words = cues["trailing"].sub("", spoken.sentence.text[start:end])
            yield SpokenFact(cue, cues.frame("said", as_statement(words)), spoken)


def _is_passing(clause: str, cues: LanguageCues) -> bool:
    """Whether it tells of one occasion or of the thing at hand, and not how the user is."""
    return bool(cues["passing"].search(clause.strip(" ,;:.!?。，！-–—")))


def fact_cue(plain: str, cues: LanguageCues) -> tuple[FactCue, str] | None:
    """The cue of a statement, and the value where a person has one."""
    for cue in cues.facts:
        if match := cue.pattern.match(plain):
            return cue, (match.groupdict().get("value") or "").strip()
    return None


def _beginnings(plain: str, cues: LanguageCues) -> Iterator[tuple[int, FactCue]]:
    lead = cues["fact_lead_in"].match(plain)
    starts = [lead.end() if lead else 0, *(gap.end() for gap in cues["clause_break"].finditer(plain))]
    for start in dict.fromkeys(starts):
        more = cues["fact_lead_in"].match(plain[start:])
        begin = start + (more.end() if more else 0)
        if hit := fact_cue(plain[begin:], cues):
            yield begin, hit[0]
