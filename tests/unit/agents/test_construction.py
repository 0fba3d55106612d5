"""Wrong parts are refused when they are given, in a sentence that names what was expected."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reflexio.agents import (
    Agent,
    InMemoryMemory,
    InMemoryVectorStore,
    Judge,
    ReAct,
    Reflexion,
    ScriptedModel,
    reflexion,
)
from reflexio.agents.tools import Tool

MODEL = ScriptedModel()


def takes_nothing() -> bool:
    return True


def takes_three(one: str, two: str, three: str) -> bool:
    return True


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"base": "react"}, r"base='react': give an architecture .*ReAct\(\)"),
        ({"base": ReAct}, r"base=ReAct: give an architecture"),
        ({"base": 7}, "base=7: give an architecture"),
        ({"evaluator": "tests"}, r"evaluator='tests' .*give a function of the output.*UnitTests"),
        ({"evaluator": Judge}, "evaluator=Judge .*give a function"),
        ({"evaluator": [bool, 3]}, "evaluator=3 .*or a list of them"),
        ({"evaluator": takes_nothing}, "evaluator=takes_nothing takes 0 arguments"),
        ({"evaluator": takes_three}, "evaluator=takes_three takes 3 arguments"),
        ({"reflector": "always"}, r"reflector='always' .*Reflector\(…\), \"feedback\" or None"),
        ({"reflector": takes_nothing}, "reflector=takes_nothing takes 0 arguments"),
        ({"evaluator_model": 3}, r"evaluator_model=3: give a name like \"openai:gpt-5-mini\""),
        ({"evaluator_prompt": Path("judge.md")}, r"evaluator_prompt=.*give the text of the prompt.*read_text"),
        ({"lesson_store": InMemoryVectorStore}, r"InMemoryVectorStore is a class: give a store"),
        ({"lesson_store": 3}, "neither a LessonStore nor a VectorStore"),
    ],
)
def test_a_wrong_part_of_reflexion_is_named(given: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        Reflexion(**given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tools": "weather"}, r"tools='weather': give a list of typed functions"),
        ({"tools": takes_nothing}, "tools=takes_nothing: give a list"),
        ({"tools": ["weather"]}, "A tool is a typed function with a docstring, or a Tool, not 'weather'"),
        ({"tools": None}, "tools=None: give a list"),
        ({"model": None}, r"model=None: give a name like"),
        ({"memory": InMemoryMemory}, r"memory=InMemoryMemory: give a memory, such as InMemoryMemory\(\)"),
        ({"budget": 3}, r"budget=3: give a Budget"),
        ({"architecture": Reflexion}, "architecture=Reflexion: give one of 'react', 'reflexion'"),
    ],
)
def test_a_wrong_part_of_an_agent_is_named(given: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        Agent(**{"model": MODEL, **given})


def test_a_tool_whose_types_cannot_be_read_is_named() -> None:
    def ask(what: "Unknown") -> str:  # type: ignore[name-defined]  # noqa: F821
        return ""

    class Thing: ...

    def use(thing: Thing) -> str:
        return ""

    with pytest.raises(ValueError, match=r"types of the tool 'ask' cannot be read: .*Unknown"):
        Tool(ask)
    with pytest.raises(ValueError, match="tool 'use' has a type that no model can fill"):
        Tool(use)


async def test_a_partial_and_a_callable_object_are_tools() -> None:
    def add(one: int, two: int) -> int:
        return one + two

    class Adder:
        """Adds."""

        def __call__(self, one: int) -> int:
            return one + 1

    assert await Tool(partial(add, 1))({"two": 2}) == "3"
    assert await Tool(Adder(), name="adder")({"one": 2}) == "3"


async def test_the_function_refuses_the_same_parts() -> None:
    with pytest.raises(TypeError, match="evaluate=takes_nothing takes 0 arguments"):
        await reflexion(lambda task: task, "task", evaluate=takes_nothing)


def test_two_judges_are_one_too_many() -> None:
    with pytest.raises(ValueError, match="not both"):
        Reflexion(evaluator=bool, evaluator_model=MODEL)
    with pytest.raises(ValueError, match="max_lessons must be >= 1"):
        Reflexion(max_lessons=0)
