"""The ways to a structured answer, in the order in which they are tried: a tool that the model must call, the JSON
schema as the format of the response, and the schema in the prompt."""

import json
from dataclasses import replace
from functools import cache
from typing import Any, assert_never

from pydantic import BaseModel
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from reflexio.ports.chat import Messages
from reflexio.providers.chat.resolve import StructuredOutput

WAYS: tuple[StructuredOutput, ...] = ("tools", "json_schema", "prompt")
ANSWER_FORM = """\
# The form of the answer
Answer with one JSON object and nothing else: no words before or after it, no code fence. It follows this JSON schema:
"""


def framed(messages: Messages, schema: type[BaseModel], way: StructuredOutput) -> Messages:
    """The prompt; it states the schema where nothing else does."""
    if way != "prompt":
        return messages
    return replace(messages, instructions=f"{messages.instructions}\n\n{ANSWER_FORM}{_compact_schema(schema)}")


@cache
def answer_parameters(schema: type[BaseModel], way: StructuredOutput) -> ModelRequestParameters:
    match way:
        case "tools":
            tool = ToolDefinition(
                name="answer",
                parameters_json_schema=lean_schema(schema),
                description="Gives the answer. Call it exactly once.",
                kind="output",
            )
            return ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)
        case "json_schema":
            answer = OutputObjectDefinition(json_schema=lean_schema(schema), name="answer")
            return ModelRequestParameters(output_mode="native", output_object=answer, allow_text_output=True)
        case "prompt":
            return ModelRequestParameters(output_mode="text", allow_text_output=True)
        case _:
            assert_never(way)


def lean_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """Without titles, which repeat the names, and defaults, which invite omissions: both cost tokens in every call."""
    return dict(_lean(schema.model_json_schema()))


@cache
def _compact_schema(schema: type[BaseModel]) -> str:
    return json.dumps(lean_schema(schema), ensure_ascii=False, separators=(",", ":"))


def _lean(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_lean(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    lean = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):  # Here the keys are names of fields: one called `title` stays.
            lean[key] = {name: _lean(member) for name, member in value.items()}
        elif key not in ("title", "default"):
            lean[key] = _lean(value)
    return lean
