"""Evaluators that need no model and no process: an expected answer, a pattern, a schema."""

import json
import re
from collections.abc import Callable
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from reflexio.agents.attempt import Evaluation, shorten
from reflexio.agents.evaluators.evaluation import extract_code

MAX_FAULTS, MAX_CHARS = 5, 200
NO_JSON = "The output is not JSON"


class ExactMatch:
    """Passes when the output is the expected one. Text is compared without the blanks around it.

    The feedback does not contain the expected answer: a lesson that does would be useless for the next task.

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
        return Evaluation(0.0, False, f"{shorten(repr(output), MAX_CHARS)} is not the expected answer.")

    def _comparable(self, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return value.strip().casefold() if self._ignore_case else value.strip()


class Regex:
    """Passes when the output contains a match of the pattern.

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
    """Passes when the output fits: a type that pydantic knows (a model, `list[int]` …) or a JSON schema.

    Text is read as JSON, also between code fences. JSON schemas need the package `jsonschema`.

    >>> import asyncio
    >>> asyncio.run(Schema(dict[str, int])('{"a": "b"}')).feedback
    'a: Input should be a valid integer, unable to parse string as an integer'
    """

    def __init__(self, shape: Any) -> None:
        self._find_faults = _json_schema_faults(shape) if isinstance(shape, dict) else _pydantic_faults(shape)

    async def __call__(self, output: Any) -> Evaluation:
        faults = self._find_faults(extract_code(output) if isinstance(output, str) else output)
        if not faults:
            return Evaluation(1.0, True)
        return Evaluation(0.0, False, "; ".join(shorten(fault, MAX_CHARS) for fault in faults[:MAX_FAULTS]))


def _pydantic_faults(shape: Any) -> Callable[[Any], list[str]]:
    adapter = TypeAdapter(shape)

    def faults(value: Any) -> list[str]:
        try:
            (adapter.validate_json if isinstance(value, str) else adapter.validate_python)(value)
        except ValidationError as error:
            return [_pydantic_fault(details) for details in error.errors(include_url=False)]
        return []

    return faults


def _json_schema_faults(schema: dict[str, Any]) -> Callable[[Any], list[str]]:
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
        errors = sorted(validator.iter_errors(value), key=lambda error: list(map(str, error.absolute_path)))
        return [_at(error.absolute_path, error.message) for error in errors]

    return faults


def _pydantic_fault(details: ErrorDetails) -> str:
    if details["type"] == "json_invalid":
        return f"{NO_JSON}: {details['msg'].removeprefix('Invalid JSON: ')}"
    return _at(details["loc"], details["msg"])


def _at(path: Any, message: str) -> str:
    steps = ".".join(map(str, path))
    return f"{steps}: {message}" if steps else message
