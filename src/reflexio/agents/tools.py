"""Tools from plain typed functions: their description for a model comes from the signature and the docstring."""

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model
from pydantic_core import to_jsonable_python

from reflexio.agents.calls import FAILURES, in_thread, is_async, shown, unless_cancelled
from reflexio.agents.model import ToolCall, ToolSpec


class Tool:
    """A function that a model can call. Plain functions run in a thread, async ones in the event loop.

    >>> def weather(city: str, days: int = 1) -> str:
    ...     "The weather in a city."
    ...     return f"{city}: rain for {days} days"
    >>> Tool(weather).spec.name, sorted(Tool(weather).spec.parameters["properties"])
    ('weather', ['city', 'days'])
    """

    def __init__(self, function: Callable[..., Any], *, name: str = "", description: str = "") -> None:
        if isinstance(function, type) or not callable(function):
            raise TypeError(f"A tool is a typed function with a docstring, or a Tool, not {shown(function)}.")
        self._function = function
        self._is_async = is_async(function)
        self._arguments = _arguments_model(function)
        try:
            schema = self._arguments.model_json_schema()
        except PydanticUserError as error:
            raise ValueError(
                f"A parameter of the tool {_name(function)!r} has a type that no model can fill: {error.message}"
            ) from error
        schema.pop("title", None)
        self.spec = ToolSpec(name or _name(function), description or inspect.getdoc(function) or "", schema)

    async def __call__(self, args: Mapping[str, Any]) -> str:
        """The answer as a model reads it: text, or JSON. Raises what the function raises."""
        parsed = self._arguments.model_validate(dict(args))
        fields = type(parsed).model_fields
        values = {str(fields[name].alias): getattr(parsed, name) for name in parsed.model_fields_set}
        answer = await (self._function(**values) if self._is_async else in_thread(lambda: self._function(**values)))
        if inspect.isawaitable(answer):
            answer = await answer
        return answer if isinstance(answer, str) else json.dumps(to_jsonable_python(answer, fallback=str))


def tools_by_name(functions: Sequence[Callable[..., Any] | Tool]) -> dict[str, Tool]:
    if isinstance(functions, str | Mapping) or not isinstance(functions, Iterable):
        raise TypeError(f"tools={shown(functions)}: give a list of typed functions, as in tools=[weather].")
    tools = [function if isinstance(function, Tool) else Tool(function) for function in functions]
    names = [tool.spec.name for tool in tools]
    if len(set(names)) < len(names):
        raise ValueError(f"Two tools have the same name: {', '.join(sorted(names))}.")
    return dict(zip(names, tools, strict=True))


async def run_tool(call: ToolCall, tools: Mapping[str, Tool]) -> tuple[str, bool]:
    """The answer for the model, and whether the call worked. The model decides what to do about a failed tool."""
    tool = tools.get(call.name)
    if tool is None:
        return f"There is no tool {call.name!r}; there are: {', '.join(tools) or 'none'}.", False
    try:
        return await tool(call.args), True
    except ValidationError as error:
        faults = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors(include_url=False))
        return f"The arguments do not fit: {'; '.join(faults)}", False
    except FAILURES as error:
        unless_cancelled(error)
        return f"{type(error).__name__}: {error}", False


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(_plain(function), "__name__", type(function).__name__))


def _plain(function: Any) -> Any:
    """The function that has the annotations: the one inside of a `partial`, or the method of a callable object."""
    while isinstance(function, partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


def _arguments_model(function: Callable[..., Any]) -> type[BaseModel]:
    """The arguments as a pydantic model. Its fields are numbered, since pydantic reserves some parameter names."""
    try:
        hints = get_type_hints(_plain(function), include_extras=True)
        parameters = inspect.signature(function).parameters
    except (NameError, TypeError, ValueError) as error:
        raise ValueError(f"The types of the tool {_name(function)!r} cannot be read: {error}.") from error
    fields: dict[str, Any] = {}
    for name, parameter in parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ValueError(f"The parameter {name!r} of {_name(function)!r} has no name that a model could use.")
        if name not in hints:
            raise ValueError(f"The parameter {name!r} of {_name(function)!r} needs a type.")
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[f"field_{len(fields)}"] = (hints[name], Field(default, alias=name))
    try:
        return create_model(_name(function), __config__=ConfigDict(extra="forbid"), **fields)
    except PydanticUserError as error:
        raise ValueError(
            f"A parameter of the tool {_name(function)!r} has a type that no model can fill: {error.message}"
        ) from error
