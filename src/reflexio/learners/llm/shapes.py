"""The shapes of a model's answers, with as few words as explain them: a schema is paid for with every call.

The outer shapes are strict, so that an answer to some other question is repaired. Inside, each entry is read on its
own: what cannot be read of it is as good as left out, and costs no other entry.
"""

import json
import re
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator

from reflexio.models.status import ProfileTimeToLive

E = TypeVar("E", bound=BaseModel)
Action = Literal["add", "merge", "replace", "drop", "forget"]


def _number(value: Any) -> int:
    """Models write 3, "3", "[3]" and "turn 3". What is no whole number becomes zero, which is nobody's."""
    match value:
        case bool():
            return 0
        case int():
            return value
        case float():
            return int(value) if value.is_integer() else 0
        case str():
            found = re.fullmatch(r"[^\d-]*(\d{1,9})\D*", value)
            return int(found[1]) if found else 0
        case _:
            return 0


def _words(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _lifetime(value: Any) -> Any:
    return value if value in list(ProfileTimeToLive) else ProfileTimeToLive.INFINITY


def _object(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _each(shape: type[E]) -> BeforeValidator:
    """A list of which every entry is read on its own; one that cannot be read becomes an empty one."""

    def read(value: Any) -> E:
        try:
            return shape.model_validate(value)
        except ValidationError:
            return shape()

    return BeforeValidator(lambda value: [read(each) for each in _list(value)])


def _needed(*names: str) -> ConfigDict:
    """Fields that a model is told to give. Its answer is read without them all the same."""
    return ConfigDict(json_schema_extra={"required": list(names)})


Words = Annotated[str, BeforeValidator(_words)]
Number = Annotated[int, BeforeValidator(_number)]


class FoundQuote(BaseModel):
    model_config = _needed("turn", "text")

    turn: Number = 0
    text: Words = ""

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: Any) -> Any:
        return {"text": value} if isinstance(value, str) else value


Quotes = Annotated[list[FoundQuote], _each(FoundQuote)]


class FoundProfile(BaseModel):
    model_config = _needed("type", "content", "evidence")

    type: Words = ""
    content: Words = ""
    time_to_live: Annotated[ProfileTimeToLive, BeforeValidator(_lifetime)] = ProfileTimeToLive.INFINITY
    evidence: Quotes = []


class FoundPlaybook(BaseModel):
    model_config = _needed("type", "trigger", "content", "rationale", "metadata", "evidence")

    type: Words = ""
    trigger: Words = ""
    content: Words = ""
    rationale: Words = ""
    metadata: Annotated[dict[str, Any], BeforeValidator(_object)] = {}
    evidence: Quotes = []


def _kind(value: Any) -> str:
    return "playbook" if isinstance(value, str) and "playbook" in value.lower() else "profile"


class FoundForget(BaseModel):
    model_config = _needed("kind", "content", "evidence")

    kind: Annotated[Literal["profile", "playbook"], BeforeValidator(_kind)] = "profile"
    content: Words = ""
    evidence: Quotes = []


class Findings(BaseModel):
    model_config = ConfigDict(extra="forbid")

    profiles: Annotated[list[FoundProfile], _each(FoundProfile)] = []
    playbooks: Annotated[list[FoundPlaybook], _each(FoundPlaybook)] = []
    forget: Annotated[list[FoundForget], _each(FoundForget)] = []


class Verdict(BaseModel):
    model_config = _needed("note", "action")

    note: Number = 0
    action: Annotated[Action, BeforeValidator(lambda value: _words(value).lower())] = "add"
    targets: Annotated[list[Number], BeforeValidator(_list)] = []
    trigger: Words = ""
    content: Words = ""
    rationale: Words = ""
    reason: Words = ""


class Verdicts(BaseModel):
    model_config = ConfigDict(extra="forbid")

    decisions: Annotated[list[Verdict], _each(Verdict)]


class FoundRule(BaseModel):
    model_config = _needed("trigger", "content", "rationale")

    trigger: Words = ""
    content: Words = ""
    rationale: Words = ""


class Generalised(BaseModel):
    model_config = ConfigDict(extra="forbid")

    rule: Annotated[FoundRule | None, BeforeValidator(lambda value: value or None)]
