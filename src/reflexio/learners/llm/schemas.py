"""The schemas of a model's answers, with as few words as explain them: a schema is paid for with every call.

The outer schemas are strict, so that an answer to some other question is repaired. Inside, each entry is read on its
own: what cannot be read of it counts as missing, and costs no other entry. The headers of the prompts name the schemas
`Findings` (ExtractionAnswer), `Verdicts` (ConsolidationAnswer), `Generalised` (SummaryAnswer) and `Wording`
(RewordedPlaybook): their text is hashed and stays as it is.
"""

import json
import re
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from reflexio.models.learning import ProfileTimeToLive, Scope
from reflexio.models.optimisation import Place
from reflexio.models.wording import without_hidden

E = TypeVar("E", bound=BaseModel)

QUOTE_NAMES = ("quote", "quotation", "passage", "span", "content", "words")
NUMBER_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
LONGEST_WORDING = 8_000
MOST_POINTS = 8


def _number(value: Any) -> int:
    """Models write 3, "3", "[3]", "turn 3" and "three". Anything else becomes zero, which is no turn and no note."""
    match value:
        case bool():
            return 0
        case int():
            return value
        case float():
            return int(value) if value.is_integer() else 0
        case str():
            digits = re.fullmatch(r"[^\d-]*(\d{1,9})\D*", value)
            named = [NUMBER_WORDS.index(word) for word in re.findall(r"[a-z]+", value.lower()) if word in NUMBER_WORDS]
            return int(digits[1]) if digits else named[0] if len(named) == 1 else 0
        case _:
            return 0


def _numbers(value: Any) -> list[Any]:
    """The entries of a list of numbers, which models also write as one text: "1, 2"."""
    return re.findall(r"\d{1,9}", value) or [value] if isinstance(value, str) else _list(value)


def _text(value: Any) -> str:
    return without_hidden(value).strip() if isinstance(value, str) else ""


def _object(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _each(schema: type[E]) -> BeforeValidator:
    """A list of which every entry is read on its own; one that cannot be read becomes an empty one."""

    def read(value: Any) -> E:
        try:
            return schema.model_validate(value)
        except ValidationError:
            return schema()

    return BeforeValidator(lambda value: [read(entry) for entry in _list(value)])


def _strict(schema: dict[str, Any]) -> None:
    """Every field is asked for and no other, as strict modes of providers require. Docstrings are not for models.

    Reading is lenient all the same: an answer without some field is read.
    """
    schema.pop("description", None)
    schema["required"] = list(schema["properties"])
    schema["additionalProperties"] = False


class AnswerPart(BaseModel):
    """A part of an answer. The order of fields is the order in which a model thinks: reasons before results."""

    model_config = ConfigDict(json_schema_extra=_strict)


def _points(value: object) -> list[str]:
    """A list of short texts; models sometimes write a single one without the list."""
    return [text for entry in _list(value) if (text := _text(entry))][:MOST_POINTS]


Text = Annotated[str, BeforeValidator(_text)]
Number = Annotated[int, BeforeValidator(_number)]
Points = Annotated[list[str], BeforeValidator(_points)]
Action = Literal["add", "merge", "replace", "drop", "forget"]


class ExtractedQuote(AnswerPart):
    turn: Number = 0
    text: Text = ""

    @model_validator(mode="before")
    @classmethod
    def _accept_other_forms(cls, value: Any) -> Any:
        """A bare text, and the quote under another name."""
        if isinstance(value, dict) and not value.get("text"):
            return {**value, "text": next((member for name, member in value.items() if name in QUOTE_NAMES), "")}
        return {"text": value} if isinstance(value, str) else value


Quotes = Annotated[list[ExtractedQuote], _each(ExtractedQuote)]


def _scope(value: Any) -> Scope | None:
    name = _text(value).lower().replace(" ", "_")
    return Scope(name) if name in list(Scope) else None


AnsweredScope = Annotated[
    Scope | None, BeforeValidator(_scope), WithJsonSchema({"type": "string", "enum": list(Scope)})
]
"""None when the model does not say, or says something else: then the words decide."""


def _metadata(value: Any) -> dict[str, Any]:
    """Pairs of name and value, because no strict mode allows free objects; also an object, or one as text."""
    if isinstance(value, list):
        pairs = [pair for pair in value if isinstance(pair, dict)]
        return {name: pair.get("value") for pair in pairs if (name := _text(pair.get("name")))}
    return dict(_object(value))


_SCALAR = [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]
_VALUE = {"anyOf": [*_SCALAR, {"type": "array", "items": {"type": "string"}}]}
_PAIR = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "value": _VALUE},
    "required": ["name", "value"],
    "additionalProperties": False,
}
Metadata = Annotated[dict[str, Any], BeforeValidator(_metadata), WithJsonSchema({"type": "array", "items": _PAIR})]


def _time_to_live(value: Any) -> ProfileTimeToLive:
    """Also "1 week" and "One Month"; what is no known span is taken as lasting."""
    letters = re.sub(r"[\W_]+", "_", _text(value).lower()).removesuffix("s")
    spelling = re.sub(r"^(?:1|an?)_", "one_", letters)
    spans = [span for span in ProfileTimeToLive if spelling in (span.value, span.value.removeprefix("one_"))]
    return next(iter(spans), ProfileTimeToLive.INFINITY)


TimeToLive = Annotated[
    ProfileTimeToLive,
    BeforeValidator(_time_to_live),
    WithJsonSchema({"type": "string", "enum": list(ProfileTimeToLive)}),
]


class ExtractedProfile(AnswerPart):
    evidence: Quotes = []
    type: Text = ""
    content: Text = ""
    time_to_live: TimeToLive = ProfileTimeToLive.INFINITY
    scope: AnsweredScope = None


class ExtractedPlaybook(AnswerPart):
    evidence: Quotes = []
    type: Text = ""
    rationale: Text = ""
    trigger: Text = ""
    content: Text = ""
    scope: AnsweredScope = None
    metadata: Metadata = {}


class ExtractedForget(AnswerPart):
    evidence: Quotes = []
    kind: Annotated[
        Literal["profile", "playbook"],
        BeforeValidator(lambda value: "playbook" if "playbook" in _text(value).lower() else "profile"),
    ] = "profile"
    content: Text = ""


class ExtractionAnswer(AnswerPart):
    """All three lists are asked for. Without any of them it is no answer; a missing one is an empty one."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_strict)

    profiles: Annotated[list[ExtractedProfile], _each(ExtractedProfile)] = []
    playbooks: Annotated[list[ExtractedPlaybook], _each(ExtractedPlaybook)] = []
    forget: Annotated[list[ExtractedForget], _each(ExtractedForget)] = []

    @model_validator(mode="after")
    def _require_a_list(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("the lists profiles, playbooks and forget are missing")
        return self


class NoteDecision(AnswerPart):
    note: Number = 0
    reason: Text = ""
    action: Annotated[Action, BeforeValidator(lambda value: _text(value).lower())] = "add"
    targets: Annotated[list[Number], BeforeValidator(_numbers)] = []
    rationale: Text = ""
    trigger: Text = ""
    content: Text = ""


class ConsolidationAnswer(AnswerPart):
    model_config = ConfigDict(extra="forbid", json_schema_extra=_strict)

    decisions: Annotated[list[NoteDecision], _each(NoteDecision)]


class SummaryRule(AnswerPart):
    rationale: Text = ""
    trigger: Text = ""
    content: Text = ""


class SummaryAnswer(AnswerPart):
    model_config = ConfigDict(extra="forbid", json_schema_extra=_strict)

    rule: Annotated[SummaryRule | None, BeforeValidator(lambda value: value or None)]


def _verdict(value: Any) -> str:
    return re.sub(r"[\s-]+", "_", _text(value).lower())


class Opinion(AnswerPart):
    """One verdict; score and likert follow from it, so that they cannot contradict it. Other marks are not read."""

    rationale: Text = ""
    better_in_first: Points = []
    better_in_second: Points = []
    worse_in_first: Points = []
    worse_in_second: Points = []
    wrong_in_both: Points = []
    missing_instructions: Points = []
    recommended_mutations: Points = []
    verdict: Annotated[Literal["first_clearly", "first", "tie", "second", "second_clearly"], BeforeValidator(_verdict)]

    @property
    def likert(self) -> int:
        """1: the first is far better; 3: both serve alike; 5: the second is far better."""
        return ("first_clearly", "first", "tie", "second", "second_clearly").index(self.verdict) + 1

    @property
    def score(self) -> float:
        return (self.likert - 1) / 4

    @property
    def better(self) -> Place:
        return "tie" if self.verdict == "tie" else "first" if self.likert < 3 else "second"


def _storable(value: object) -> object:
    return without_hidden(value).strip() if isinstance(value, str) else value


class RewordedPlaybook(AnswerPart):
    model_config = ConfigDict(extra="forbid", json_schema_extra=_strict)

    reason: Text = ""
    content: Annotated[str, BeforeValidator(_storable), StringConstraints(min_length=1, max_length=LONGEST_WORDING)]
