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
    schema = _untitled(shape.model_json_schema())
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


def _untitled(schema: Any) -> Any:
    """Titles repeat the names, and are paid for with every call. A property called `title` is not one."""
    match schema:
        case dict():
            return {
                key: _untitled(value)
                for key, value in schema.items()
                if not (key == "title" and isinstance(value, str))
            }
        case list():
            return [_untitled(each) for each in schema]
        case _:
            return schema
