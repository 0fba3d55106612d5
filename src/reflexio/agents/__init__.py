"""Learning inside one run: an attempt, its evaluation, and a lesson for the next attempt.

It needs no server and no database. Names are imported on first use. `Any` is an evaluator, not the type.

>>> from reflexio.agents import reflexion_sync
>>> def greet(task, attempt):
...     return "Good morning!" if attempt.lessons else "Morning."
>>> result = reflexion_sync(greet, "Greet me.", evaluate=lambda output: ("Good" in output, "Say Good morning."))
>>> result.output, len(result.attempts)
('Good morning!', 2)
"""

import typing
from importlib import import_module

if typing.TYPE_CHECKING:
    from reflexio.agents.agent import Agent as Agent
    from reflexio.agents.agent import RunResult as RunResult
    from reflexio.agents.api import reflexion as reflexion
    from reflexio.agents.api import reflexion_stream as reflexion_stream
    from reflexio.agents.api import reflexion_sync as reflexion_sync
    from reflexio.agents.api import reflexive as reflexive
    from reflexio.agents.architecture import AgentSession as AgentSession
    from reflexio.agents.architecture import Architecture as Architecture
    from reflexio.agents.architecture import Dependencies as Dependencies
    from reflexio.agents.architecture import Event as Event
    from reflexio.agents.architecture import EventKind as EventKind
    from reflexio.agents.architecture import ReAct as ReAct
    from reflexio.agents.architecture import RunContext as RunContext
    from reflexio.agents.attempt import Attempt as Attempt
    from reflexio.agents.attempt import AttemptFailed as AttemptFailed
    from reflexio.agents.attempt import AttemptRecord as AttemptRecord
    from reflexio.agents.attempt import Evaluation as Evaluation
    from reflexio.agents.attempt import Lesson as Lesson
    from reflexio.agents.budget import Budget as Budget
    from reflexio.agents.budget import Usage as Usage
    from reflexio.agents.conversation_memory import ConversationMemory as ConversationMemory
    from reflexio.agents.evaluators.checks import ExactMatch as ExactMatch
    from reflexio.agents.evaluators.checks import Regex as Regex
    from reflexio.agents.evaluators.checks import Schema as Schema
    from reflexio.agents.evaluators.evaluation import All as All
    from reflexio.agents.evaluators.evaluation import Any as Any
    from reflexio.agents.evaluators.evaluation import Weighted as Weighted
    from reflexio.agents.evaluators.judge import Judge as Judge
    from reflexio.agents.evaluators.score import parse_score as parse_score
    from reflexio.agents.evaluators.unit_tests import UnitTests as UnitTests
    from reflexio.agents.events import ReflexionEvent as ReflexionEvent
    from reflexio.agents.events import ReflexionResult as ReflexionResult
    from reflexio.agents.lessons.server import ReflexioLessons as ReflexioLessons
    from reflexio.agents.lessons.store import LessonStore as LessonStore
    from reflexio.agents.lessons.store import MemoryLessons as MemoryLessons
    from reflexio.agents.lessons.store import Recalled as Recalled
    from reflexio.agents.lessons.store import Saved as Saved
    from reflexio.agents.lessons.store import VectorStoreLessons as VectorStoreLessons
    from reflexio.agents.loop import Output as Output
    from reflexio.agents.memory import InMemoryMemory as InMemoryMemory
    from reflexio.agents.memory import Memory as Memory
    from reflexio.agents.memory import MemoryBlock as MemoryBlock
    from reflexio.agents.model import Message as Message
    from reflexio.agents.model import Model as Model
    from reflexio.agents.model import ModelReply as ModelReply
    from reflexio.agents.model import ScriptedModel as ScriptedModel
    from reflexio.agents.model import ToolCall as ToolCall
    from reflexio.agents.reflector import Reflector as Reflector
    from reflexio.agents.reflexion_architecture import DEFAULT_EVALUATOR_PROMPT as DEFAULT_EVALUATOR_PROMPT
    from reflexio.agents.reflexion_architecture import DEFAULT_REFLECTOR_PROMPT as DEFAULT_REFLECTOR_PROMPT
    from reflexio.agents.reflexion_architecture import Reflexion as Reflexion
    from reflexio.agents.tools import Tool as Tool
    from reflexio.agents.vectors.embedding import Embedder as Embedder
    from reflexio.agents.vectors.embedding import embedder as embedder
    from reflexio.agents.vectors.memory import InMemoryVectorStore as InMemoryVectorStore
    from reflexio.agents.vectors.postgres import PostgresVectorStore as PostgresVectorStore
    from reflexio.agents.vectors.store import Chunk as Chunk
    from reflexio.agents.vectors.store import SearchResult as SearchResult
    from reflexio.agents.vectors.store import VectorStore as VectorStore

_NAMES = {
    "agent": "Agent RunResult",
    "api": "reflexion reflexion_stream reflexion_sync reflexive",
    "architecture": "AgentSession Architecture Dependencies Event EventKind ReAct RunContext",
    "attempt": "Attempt AttemptFailed AttemptRecord Evaluation Lesson",
    "budget": "Budget Usage",
    "conversation_memory": "ConversationMemory",
    "evaluators.checks": "ExactMatch Regex Schema",
    "evaluators.evaluation": "All Any Weighted",
    "evaluators.judge": "Judge",
    "evaluators.score": "parse_score",
    "evaluators.unit_tests": "UnitTests",
    "events": "ReflexionEvent ReflexionResult",
    "lessons.server": "ReflexioLessons",
    "lessons.store": "LessonStore MemoryLessons Recalled Saved VectorStoreLessons",
    "loop": "Output",
    "memory": "InMemoryMemory Memory MemoryBlock",
    "model": "Message Model ModelReply ScriptedModel ToolCall",
    "reflector": "Reflector",
    "reflexion_architecture": "DEFAULT_EVALUATOR_PROMPT DEFAULT_REFLECTOR_PROMPT Reflexion",
    "tools": "Tool",
    "vectors.embedding": "Embedder embedder",
    "vectors.memory": "InMemoryVectorStore",
    "vectors.postgres": "PostgresVectorStore",
    "vectors.store": "Chunk SearchResult VectorStore",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_MODULES)  # noqa: PLE0605  one list, not two


def __getattr__(name: str) -> typing.Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'reflexio.agents' has no attribute {name!r}")
    value = getattr(import_module(f"reflexio.agents.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_MODULES]
