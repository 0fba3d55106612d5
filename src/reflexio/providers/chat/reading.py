"""How an answer is asked for, and how it is read: the arguments of a tool call, or JSON in plain words."""

from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from reflexio.ports.chat import A

TOOL = "answer"
DESCRIPTION = "Gives the answer. Call it exactly once."


class Declined(Exception):
    """The model or a content filter declined to answer."""


@cache
def parameters(shape: type[BaseModel]) -> ModelRequestParameters:
    """A tool that must be called: every provider knows those. Models that answer in words are read all the same."""
    schema = _lean(shape.model_json_schema())
    tool = ToolDefinition(name=TOOL, parameters_json_schema=schema, description=DESCRIPTION, kind="output")
    return ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)


def read(response: ModelResponse, shape: type[A]) -> A:
    """The answer, or pydantic's ValidationError. Raises Declined when there is none to be had."""
    if response.finish_reason == "content_filter":
        raise Declined(f"declined to answer. {(response.provider_details or {}).get('refusal', '')}".strip())
    for call in response.parts:
        if isinstance(call, ToolCallPart):
            given = call.args if call.args is not None else ""
            return shape.model_validate_json(given) if isinstance(given, str) else shape.model_validate(given)
    return shape.model_validate_json(_json_in(response.text or ""))


def _json_in(text: str) -> str:
    """Models put JSON between words and code fences."""
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else text


def _lean(schema: Any) -> Any:
    """Without titles, which repeat the names, and defaults, which invite omissions: both are paid for every time."""
    match schema:
        case dict():
            kept = {key: value for key, value in schema.items() if key not in ("title", "default")}
            return {
                key: _members(value) if key in ("properties", "$defs") else _lean(value) for key, value in kept.items()
            }
        case list():
            return [_lean(each) for each in schema]
        case _:
            return schema


def _members(named: dict[str, Any]) -> dict[str, Any]:
    """Here keys are names of fields: one called `title` stays."""
    return {name: _lean(schema) for name, schema in named.items()}
