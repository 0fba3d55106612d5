"""Reading the score in a judge's answer.

A wrong reading would end a run with a success that did not happen. So a bare whole number in a sentence, a number above
its scale, a range, a version or a score that something else would get is not a score, and thoughts are no verdict.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

LONGEST_OPENING, MOST_OBJECTS, MOST_READ, FEW_WORDS = 200, 50, 50_000, 3
SCORE_KEYS = "score", "final_score", "overall_score", "total_score", "rating", "overall", "final"
SCALE_KEYS = "max_score", "maximum", "max", "out_of", "scale"
FEEDBACK_KEYS = "feedback", "rationale", "reasoning", "reason", "reasons", "justification", "explanation", "comment"

_NUMBER = r"[+-]?(?:[0-9]{1,9}(?:[.,][0-9]{1,18})?|[.,][0-9]{1,18})(?:[eE][+-]?[0-9]{1,3})?"
_OF = r"(?:/|out\s+of|of)"
_VALUE = rf"(?P<value>{_NUMBER})(?:\s*(?P<percent>%|percent\b)|[\s*_`)\]>]*\(?\s*{_OF}\s*(?P<scale>{_NUMBER}))?"
_END = (
    r"(?![0-9A-Za-z])(?![.,][0-9])(?!\s*(?:[-–—/]|\.\.|to\b|or\b)\s*[0-9])"
    r"(?!\s*(?:=|(?:would|could|means?|requires?|needs?|if)\b))"
)
_MARKS = r"[\s*_`\"'<>\[({$~≈\\|]*"
_CLOSE = r"[\s*_`\"'<>\])}$|]*"
# Other labels than "score" also stand before counts and grades; they need a fraction, a scale or a percent sign.
_FRACTION = rf"(?=[+-]?[0-9]*[.,][0-9]|{_NUMBER}[\s*_`]*(?:%|percent\b|\(?\s*{_OF}\s*[0-9]))"
_OTHERS = (
    r"rating|grade|verdict|bewertung|punktzahl|puntuaci[oó]n|pontua[cç][aã]o|calificaci[oó]n|分数|得分|评分|"
    r"(?:final|overall)(?:\s+(?:result|mark|evaluation|assessment|judge?ment))?"
)
_RANGE = r"(?:\s*[(\[](?P<range>[^()\[\]\n]{0,40})[)\]])?"
_LABELLED_TEXT = (
    rf"(?:score|(?P<other>\b(?:{_OTHERS})))[\s*_`\"']*{_RANGE}[\s*_`\"']*"
    rf"(?:[:=：→]|->|\bis\b|[>|](?=[\s*_`]*[0-9.]))(?(other){_MARKS}{_FRACTION}|{_MARKS}){_VALUE}{_END}"
)
_LEAD = r"(?:(?:my|the|so|thus|hence|therefore|final|overall|total|evaluation|judge)\b[\s,_*]*|[0-9]{1,2}[.)]\s+){0,4}"
_LABELLED = re.compile(_LABELLED_TEXT, re.IGNORECASE)
_EXPLICIT = re.compile(
    rf"(?:^[ \t*_`\"'{{<#>|•-]*{_LEAD}|(?<=[.!?]\s){_LEAD}|[{{,]\s*[\"']|(?<!\ba )\b(?:final|overall|total)[\s*_]*)"
    rf"{_LABELLED_TEXT}",
    re.IGNORECASE | re.MULTILINE,
)
_HEADED = re.compile(
    rf"^[ \t#*_`>-]*(?:(?:final|overall)\s+)?score[ \t*_`:]*{_RANGE}[ \t*_`:]*\n\s*{_MARKS}{_VALUE}{_END}{_CLOSE}$",
    re.IGNORECASE | re.MULTILINE,
)
_ALONE = re.compile(rf"{_MARKS}{_VALUE}{_END}{_CLOSE}\.?{_CLOSE}")
_OPENING = re.compile(rf"{_MARKS}(?=[^\n]*[.,/%])(?![0-9]+[.,]?\s){_VALUE}{_END}{_CLOSE}(?:[:;,.(\n–—]|-\s)")
_BOXED = re.compile(rf"\\boxed\{{\s*{_VALUE}{_END}")
_EDGES = " \t\n#*_`\"'<>[](){}$|.,;:–—-/"
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]*,[0-9]{3}")
_SCALE_IN_LABEL = re.compile(
    rf"\s*(?:from\s+|between\s+)?(?:{_NUMBER}\s*(?:-|–|—|to|and|\.\.+)|{_OF})\s*(?P<most>{_NUMBER})\s*(?P<sign>%?)\s*"
)
_THOUGHT_BEGINS = re.compile(r"<(think(?:ing)?|thought|reasoning)>", re.IGNORECASE)
_THOUGHT_EDGE = re.compile(r"</?(?:think(?:ing)?|thought)>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A score from 0 to 1, and the reasons that stand beside it. `end` is where in the text it was read."""

    score: float
    feedback: str
    end: int = 0


def parse_score(text: str) -> float:
    """The score in a judge's answer, from 0 to 1; 0.0 when there is none.

    >>> [parse_score(text) for text in ("score: 0.7", "score: 8/10", "score: 85%", "attempt 1 was good")]
    [0.7, 0.8, 0.85, 0.0]
    """
    return read_score(text) or 0.0


def read_score(text: str) -> float | None:
    """The score in a judge's answer, from 0 to 1; None when there is none."""
    verdict = read_verdict(text)
    return None if verdict is None else verdict.score


def read_verdict(text: str) -> Verdict | None:
    """The score and its reasons. The last explicit score counts: a JSON object with one, or a line or sentence that
    begins with its label. Other labelled scores must agree. Without any label, the answer must begin or end with the
    number.

    >>> read_verdict("The month is missing.\\nScore (0-1): 0.3")
    Verdict(score=0.3, feedback='The month is missing.', end=38)
    """
    answer = without_thoughts(text)[-MOST_READ:]
    objects = list(_objects(answer))
    prose = _without_spans(answer, [(start, end) for start, end, _ in objects])
    explicit = [*_in_objects(answer, objects), *_verdicts(_EXPLICIT, prose), *_verdicts(_HEADED, prose)]
    if explicit:
        return max(explicit, key=lambda verdict: verdict.end)
    labelled = list(_verdicts(_LABELLED, prose))
    if labelled:
        return labelled[-1] if len({verdict.score for verdict in labelled}) == 1 else None
    return next(_verdicts(_BOXED, prose), None) or _unlabelled(prose)


def without_thoughts(text: str) -> str:
    """The answer behind what a model thought aloud; thoughts without an end hide everything behind them."""
    answer = _without_closed_thoughts(text) if "</" in text else text
    edges = list(_THOUGHT_EDGE.finditer(answer)) if "<" in answer else []
    closing = [edge for edge in edges if edge.group().startswith("</")]
    if closing:
        return answer[closing[-1].end() :].strip()
    return answer[: edges[0].start()].strip() if edges else answer.strip()


def _without_closed_thoughts(text: str) -> str:
    """An end that is missing is looked for once, and not behind each of the beginnings."""
    kept: list[str] = []
    end, endless = 0, set()
    for beginning in _THOUGHT_BEGINS.finditer(text):
        tag = beginning[1].lower()
        if beginning.start() < end or tag in endless:
            continue
        if closing := re.compile(f"</{tag}>", re.IGNORECASE).search(text, beginning.end()):
            kept += text[end : beginning.start()], "\n"
            end = closing.end()
        else:
            endless.add(tag)
    return "".join([*kept, text[end:]])


def _verdicts(pattern: re.Pattern[str], text: str) -> Iterator[Verdict]:
    for match in pattern.finditer(text):
        if (score := _score(match)) is not None:
            yield Verdict(score, _reasons(text, match), match.end())


def _reasons(text: str, match: re.Match[str]) -> str:
    """The text without the line of the score, unless that line says more."""
    first = text.rfind("\n", 0, match.start() + 1) + 1
    last = text.find("\n", match.end())
    last = len(text) if last < 0 else last
    beside = text[match.end() : last].strip(_EDGES)
    others = f"{text[:first].rstrip()}\n{text[last:].lstrip()}".strip()
    if others and len(beside.split()) < FEW_WORDS:
        return others
    return text.strip() if beside or text[: match.start()].strip(_EDGES) else ""


def _unlabelled(text: str) -> Verdict | None:
    first, _, rest = text.partition("\n")
    opening = first.strip()[:LONGEST_OPENING]
    match = _ALONE.fullmatch(opening) or _OPENING.match(opening)
    if match and (score := _score(match)) is not None:
        return Verdict(score, rest.strip() or (opening if len(opening.split()) > 2 else ""), match.end())
    reasons, _, last = text.rpartition("\n")
    match = _ALONE.fullmatch(last.strip()[:LONGEST_OPENING])
    if match and (match["percent"] or match["scale"] or "." in match["value"] or "," in match["value"]):
        score = _score(match)
        return None if score is None else Verdict(score, reasons.strip(), len(text))
    return None


def _score(match: re.Match[str]) -> float | None:
    """From 0 to 1; a negative score counts as 0, and one above its scale could mean anything."""
    value, percent, scale = match.group("value", "percent", "scale")
    in_label = _SCALE_IN_LABEL.fullmatch(match.groupdict().get("range") or "")
    if not (percent or scale):
        percent = (in_label and in_label["sign"]) or (match.groupdict().get("range") or "").strip() == "%"
        scale = in_label and in_label["most"]
    return _fraction(value, "100" if percent else scale or "1")


def _fraction(value: str, scale: str) -> float | None:
    if _THOUSANDS.fullmatch(value):
        return None
    whole = float(scale.replace(",", "."))
    if whole <= 0:
        return None
    score = float(value.replace(",", ".")) / whole
    return max(0.0, score) if score <= 1.0 else None


# JSON


def _objects(text: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """The JSON objects in a text, with where they begin and end; those inside of another are part of it."""
    decoder, start = json.JSONDecoder(), text.find("{")
    for _ in range(MOST_OBJECTS):
        if start < 0:
            return
        end = start + 1
        with suppress(ValueError, RecursionError):
            answer, end = decoder.raw_decode(text, start)
            if answer:
                yield start, end, answer
        start = text.find("{", end)


def _without_spans(text: str, spans: Sequence[tuple[int, int]]) -> str:
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _in_objects(text: str, objects: Sequence[tuple[int, int, dict[str, Any]]]) -> Iterator[Verdict]:
    for start, end, answer in objects:
        if (score := _score_of(answer)) is not None:
            around = re.sub(r"```(?:json)?", "", text[:start] + text[end:]).strip()
            yield Verdict(score, _feedback_of(answer) or around, end)


def _score_of(answer: dict[str, Any]) -> float | None:
    fields = {str(key).lower().replace(" ", "_"): value for key, value in answer.items()}
    if len(fields) == 1 and isinstance(inner := next(iter(fields.values())), dict):
        return _score_of(inner)
    value = next((fields[key] for key in SCORE_KEYS if key in fields), None)
    scale = next((fields[key] for key in SCALE_KEYS if _is_number(fields.get(key))), "")
    if not (_is_number(value) or isinstance(value, str)):
        return None
    match = _ALONE.fullmatch(str(value).strip()[:LONGEST_OPENING])
    if match is None:
        return None
    return _fraction(match["value"], str(scale)) if scale and not match["scale"] else _score(match)


def _feedback_of(answer: dict[str, Any]) -> str:
    fields = {str(key).lower(): value for key, value in answer.items()}
    if len(fields) == 1 and isinstance(inner := next(iter(fields.values())), dict):
        return _feedback_of(inner)
    words = (fields[key] for key in FEEDBACK_KEYS if key in fields)
    return next((text.strip() for text in words if isinstance(text, str) and text.strip()), "")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
