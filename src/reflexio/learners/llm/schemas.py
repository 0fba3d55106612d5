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
    Field,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from reflexio.models.learning import ProfileTimeToLive, Scope

E = TypeVar("E", bound=BaseModel)

LONGEST_WORDING = 8_000
MOST_POINTS = 8


def _number(value: Any) -> int:
    """Models write 3, "3", "[3]" and "turn 3". What is no whole number becomes zero, which is no turn and no note."""
    match value:
        case bool():
            return 0
        case int():
            return value
        case float():
            return int(value) if value.is_integer() else 0
        case str():
            digits = re.fullmatch(r"[^\d-]*(\d{1,9})\D*", value)
            return int(digits[1]) if digits else 0
        case _:
            return 0


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


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


def _needed(*names: str) -> ConfigDict:
    """Fields that the schema asks for. An answer without them is read all the same."""
    return ConfigDict(json_schema_extra={"required": list(names)})


def _points(value: object) -> list[str]:
    """A list of short texts; models sometimes write a single one without the list."""
    return [text for entry in _list(value) if (text := _text(entry))][:MOST_POINTS]


Text = Annotated[str, BeforeValidator(_text)]
Number = Annotated[int, BeforeValidator(_number)]
Points = Annotated[list[str], BeforeValidator(_points)]
Action = Literal["add", "merge", "replace", "drop", "forget"]


class ExtractedQuote(BaseModel):
    model_config = _needed("turn", "text")

    turn: Number = 0
    text: Text = ""

    @model_validator(mode="before")
    @classmethod
    def _accept_bare_text(cls, value: Any) -> Any:
        return {"text": value} if isinstance(value, str) else value


Quotes = Annotated[list[ExtractedQuote], _each(ExtractedQuote)]


def _scope(value: Any) -> Scope | None:
    name = _text(value).lower().replace(" ", "_")
    return Scope(name) if name in list(Scope) else None


AnsweredScope = Annotated[Scope | None, BeforeValidator(_scope), WithJsonSchema({"enum": list(Scope)})]
"""None when the model does not say, or says something else: then the words decide."""


class ExtractedProfile(BaseModel):
    model_config = _needed("type", "content", "scope", "evidence")

    type: Text = ""
    content: Text = ""
    time_to_live: Annotated[
        ProfileTimeToLive,
        BeforeValidator(lambda value: value if value in list(ProfileTimeToLive) else ProfileTimeToLive.INFINITY),
    ] = ProfileTimeToLive.INFINITY
    scope: AnsweredScope = None
    evidence: Quotes = []


class ExtractedPlaybook(BaseModel):
    model_config = _needed("type", "trigger", "content", "rationale", "scope", "metadata", "evidence")

    type: Text = ""
    trigger: Text = ""
    content: Text = ""
    rationale: Text = ""
    scope: AnsweredScope = None
    metadata: Annotated[dict[str, Any], BeforeValidator(_object)] = {}
    evidence: Quotes = []


class ExtractedForget(BaseModel):
    model_config = _needed("kind", "content", "evidence")

    kind: Annotated[
        Literal["profile", "playbook"],
        BeforeValidator(lambda value: "playbook" if "playbook" in _text(value).lower() else "profile"),
    ] = "profile"
    content: Text = ""
    evidence: Quotes = []


class ExtractionAnswer(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"required": ["profiles", "playbooks", "forget"]})

    profiles: Annotated[list[ExtractedProfile], _each(ExtractedProfile)] = []
    playbooks: Annotated[list[ExtractedPlaybook], _each(ExtractedPlaybook)] = []
    forget: Annotated[list[ExtractedForget], _each(ExtractedForget)] = []


class NoteDecision(BaseModel):
    model_config = _needed("note", "action")

    note: Number = 0
    action: Annotated[Action, BeforeValidator(lambda value: _text(value).lower())] = "add"
    targets: Annotated[list[Number], BeforeValidator(_list)] = []
    trigger: Text = ""
    content: Text = ""
    rationale: Text = ""
    reason: Text = ""


class ConsolidationAnswer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    decisions: Annotated[list[NoteDecision], _each(NoteDecision)]


class SummaryRule(BaseModel):
    model_config = _needed("trigger", "content", "rationale")

    trigger: Text = ""
    content: Text = ""
    rationale: Text = ""


class SummaryAnswer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    rule: Annotated[SummaryRule | None, BeforeValidator(lambda value: value or None)]


class Opinion(BaseModel):
    """Read strictly: a judge whose mark contradicts its verdict has not been understood."""

    model_config = ConfigDict(extra="forbid")

    verdict: Literal["first", "second", "tie"]
    score: Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
    likert: Annotated[int, Field(ge=1, le=5)]
    rationale: Text = ""
    better_in_first: Points = []
    better_in_second: Points = []
    worse_in_first: Points = []
    worse_in_second: Points = []
    wrong_in_both: Points = []
    missing_instructions: Points = []
    recommended_mutations: Points = []

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        least, most = {"first": (0.0, 0.5), "second": (0.5, 1.0), "tie": (0.25, 0.75)}[self.verdict]
        lowest, highest = {"first": (1, 3), "second": (3, 5), "tie": (2, 4)}[self.verdict]
        if not (least <= self.score <= most and lowest <= self.likert <= highest):
            raise ValueError(f"score and likert are not on the side of the verdict {self.verdict!r}")
        return self


def _storable(value: object) -> object:
    return value.replace("\0", "").strip() if isinstance(value, str) else value


class RewordedPlaybook(BaseModel):
    model_config = ConfigDict(extra="forbid")

    content: Annotated[str, BeforeValidator(_storable), StringConstraints(min_length=1, max_length=LONGEST_WORDING)]
    reason: Text = ""
