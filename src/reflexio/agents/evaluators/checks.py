"""Evaluators that need no model and no process: a known answer, a pattern, a shape."""

import json
import re
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from reflexio.agents.bullets import shortened
from reflexio.agents.code import code_in
from reflexio.agents.values import Evaluation

FAULTS_SHOWN = 5
NO_JSON = "The output is not JSON"
SHOWN = 200


class ExactMatch:
    """Passes when the output is the expected one. Text is compared without the blanks around it.

    The feedback does not give the expected answer away: a lesson that does teaches nothing for the next task.

    >>> import asyncio
    >>> asyncio.run(ExactMatch("Paris")(" Paris ")).passed
    True
    """

    def __init__(self, expected: Any, *, ignore_case: bool = False) -> None:
        self._ignore_case = ignore_case
        self._expected = self._comparable(expected)

    async def __call__(self, output: Any) -> Evaluation:
        if self._comparable(output) == self._expected:
            return Evaluation(1.0, True)
        return Evaluation(0.0, False, f"{shortened(repr(output), SHOWN)} is not the expected answer.")

    def _comparable(self, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return value.strip().casefold() if self._ignore_case else value.strip()


class Regex:
    """Passes when the pattern is found in the output.

    >>> import asyncio
    >>> asyncio.run(Regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")("on 3 May")).feedback
    'Nothing in the output matches [0-9]{4}-[0-9]{2}-[0-9]{2}.'
    """

    def __init__(self, pattern: str | re.Pattern[str]) -> None:
        self._pattern = re.compile(pattern)

    async def __call__(self, output: Any) -> Evaluation:
        if self._pattern.search(str(output)):
            return Evaluation(1.0, True)
        return Evaluation(0.0, False, f"Nothing in the output matches {self._pattern.pattern}.")


class Schema:
    """Passes when the output has the shape: a type that pydantic knows (a model, `list[int]` …) or a JSON schema.

    Text is read as JSON, also between code fences. JSON schemas need the package `jsonschema`.

    >>> import asyncio
    >>> asyncio.run(Schema(dict[str, int])('{"a": "b"}')).feedback
    'a: Input should be a valid integer, unable to parse string as an integer'
    """

    def __init__(self, shape: Any) -> None:
        self._faults = _json_schema(shape) if isinstance(shape, dict) else _pydantic(shape)

    async def __call__(self, output: Any) -> Evaluation:
        faults = self._faults(code_in(output) if isinstance(output, str) else output)
        if not faults:
            return Evaluation(1.0, True)
        return Evaluation(0.0, False, "; ".join(shortened(each, SHOWN) for each in faults[:FAULTS_SHOWN]))


def _pydantic(shape: Any) -> Any:
    adapter = TypeAdapter(shape)

    def faults(value: Any) -> list[str]:
        try:
            if isinstance(value, str):
                adapter.validate_json(value)
            else:
                adapter.validate_python(value)
        except ValidationError as error:
            return [_fault(each) for each in error.errors(include_url=False)]
        return []

    return faults


def _json_schema(schema: dict[str, Any]) -> Any:
    try:
        from jsonschema.validators import validator_for  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError(
            "Schema({…}) needs the package jsonschema: pip install jsonschema, or give a pydantic model."
        ) from None
    kind = validator_for(schema)
    kind.check_schema(schema)
    validator = kind(schema)

    def faults(value: Any) -> list[str]:
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError) as error:
                return [f"{NO_JSON}: {error}"]
        found = sorted(validator.iter_errors(value), key=lambda each: [str(step) for step in each.absolute_path])
        return [_worded(each.absolute_path, each.message) for each in found]

    return faults


def _fault(told: ErrorDetails) -> str:
    if told["type"] == "json_invalid":
        return f"{NO_JSON}: {told['msg'].removeprefix('Invalid JSON: ')}"
    return _worded(told["loc"], told["msg"])


def _worded(place: Any, message: str) -> str:
    steps = ".".join(map(str, place))
    return f"{steps}: {message}" if steps else message
