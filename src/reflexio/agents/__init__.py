"""Learning inside one run: an attempt, what was wrong with it, and a lesson for the next one.

Needs no server and no database. Names are imported when they are first used. `Any` is an evaluator, not the type.

>>> from reflexio.agents import reflexion_sync
>>> def greet(task, attempt):
...     return "Good morning!" if attempt.lessons else "Morning."
>>> result = reflexion_sync(greet, "Greet me.", evaluate=lambda said: ("Good" in said, "Say Good morning."))
>>> result.output, len(result.attempts)
('Good morning!', 2)
"""

import typing
from importlib import import_module

if typing.TYPE_CHECKING:
    from reflexio.agents.agent import Agent as Agent
    from reflexio.agents.agent import RunResult as RunResult
    from reflexio.agents.architecture.base import AgentSession as AgentSession
    from reflexio.agents.architecture.base import Architecture as Architecture
    from reflexio.agents.architecture.base import Dependencies as Dependencies
    from reflexio.agents.architecture.base import Event as Event
    from reflexio.agents.architecture.base import EventKind as EventKind
    from reflexio.agents.architecture.base import RunContext as RunContext
    from reflexio.agents.architecture.react import ReAct as ReAct
    from reflexio.agents.architecture.reflexion import DEFAULT_EVALUATOR_PROMPT as DEFAULT_EVALUATOR_PROMPT
    from reflexio.agents.architecture.reflexion import DEFAULT_REFLECTOR_PROMPT as DEFAULT_REFLECTOR_PROMPT
    from reflexio.agents.architecture.reflexion import Reflexion as Reflexion
    from reflexio.agents.attempt import Attempt as Attempt
    from reflexio.agents.attempt import AttemptFailed as AttemptFailed
    from reflexio.agents.attempt import AttemptRecord as AttemptRecord
    from reflexio.agents.doors import reflexion as reflexion
    from reflexio.agents.doors import reflexion_stream as reflexion_stream
    from reflexio.agents.doors import reflexion_sync as reflexion_sync
    from reflexio.agents.doors import reflexive as reflexive
    from reflexio.agents.embedding import Embedder as Embedder
    from reflexio.agents.embedding import embedder as embedder
    from reflexio.agents.evaluators.checks import ExactMatch as ExactMatch
    from reflexio.agents.evaluators.checks import Regex as Regex
    from reflexio.agents.evaluators.checks import Schema as Schema
    from reflexio.agents.evaluators.combined import All as All
    from reflexio.agents.evaluators.combined import Any as Any
    from reflexio.agents.evaluators.combined import Weighted as Weighted
    from reflexio.agents.evaluators.judge import Judge as Judge
    from reflexio.agents.evaluators.unit_tests import UnitTests as UnitTests
    from reflexio.agents.events import ReflexionEvent as ReflexionEvent
    from reflexio.agents.events import ReflexionResult as ReflexionResult
    from reflexio.agents.lessons.server import ReflexioLessons as ReflexioLessons
    from reflexio.agents.lessons.vectors import MemoryLessons as MemoryLessons
    from reflexio.agents.lessons.vectors import VectorStoreLessons as VectorStoreLessons
    from reflexio.agents.memory import InMemoryMemory as InMemoryMemory
    from reflexio.agents.memory import Memory as Memory
    from reflexio.agents.memory import MemoryBlock as MemoryBlock
    from reflexio.agents.model import Message as Message
    from reflexio.agents.model import Model as Model
    from reflexio.agents.model import ModelReply as ModelReply
    from reflexio.agents.model import ScriptedModel as ScriptedModel
    from reflexio.agents.model import ToolCall as ToolCall
    from reflexio.agents.plan import Output as Output
    from reflexio.agents.reflector import Reflector as Reflector
    from reflexio.agents.score import parse_score as parse_score
    from reflexio.agents.stores import Chunk as Chunk
    from reflexio.agents.stores import LessonStore as LessonStore
    from reflexio.agents.stores import Recalled as Recalled
    from reflexio.agents.stores import Saved as Saved
    from reflexio.agents.stores import SearchResult as SearchResult
    from reflexio.agents.stores import VectorStore as VectorStore
    from reflexio.agents.tools import Tool as Tool
    from reflexio.agents.values import Budget as Budget
    from reflexio.agents.values import Evaluation as Evaluation
    from reflexio.agents.values import Lesson as Lesson
    from reflexio.agents.values import Usage as Usage
    from reflexio.agents.vectors.memory import InMemoryVectorStore as InMemoryVectorStore
    from reflexio.agents.vectors.postgres import PostgresVectorStore as PostgresVectorStore

_NAMES = {
    "agent": ["Agent", "RunResult"],
    "architecture.base": ["AgentSession", "Architecture", "Dependencies", "Event", "EventKind", "RunContext"],
    "architecture.react": ["ReAct"],
    "architecture.reflexion": ["DEFAULT_EVALUATOR_PROMPT", "DEFAULT_REFLECTOR_PROMPT", "Reflexion"],
    "attempt": ["Attempt", "AttemptFailed", "AttemptRecord"],
    "doors": ["reflexion", "reflexion_stream", "reflexion_sync", "reflexive"],
    "embedding": ["Embedder", "embedder"],
    "evaluators.checks": ["ExactMatch", "Regex", "Schema"],
    "evaluators.combined": ["All", "Any", "Weighted"],
    "evaluators.judge": ["Judge"],
    "evaluators.unit_tests": ["UnitTests"],
    "events": ["ReflexionEvent", "ReflexionResult"],
    "lessons.server": ["ReflexioLessons"],
    "lessons.vectors": ["MemoryLessons", "VectorStoreLessons"],
    "memory": ["InMemoryMemory", "Memory", "MemoryBlock"],
    "model": ["Message", "Model", "ModelReply", "ScriptedModel", "ToolCall"],
    "plan": ["Output"],
    "reflector": ["Reflector"],
    "score": ["parse_score"],
    "stores": ["Chunk", "LessonStore", "Recalled", "Saved", "SearchResult", "VectorStore"],
    "tools": ["Tool"],
    "values": ["Budget", "Evaluation", "Lesson", "Usage"],
    "vectors.memory": ["InMemoryVectorStore"],
    "vectors.postgres": ["PostgresVectorStore"],
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}

__all__ = sorted(_HOMES)  # noqa: PLE0605  one list, not two


def __getattr__(name: str) -> typing.Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'reflexio.agents' has no attribute {name!r}")
    value = getattr(import_module(f"reflexio.agents.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
