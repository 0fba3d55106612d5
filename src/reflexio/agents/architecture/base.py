"""What every architecture is given and gives back: a session to fill, what it may use, and events on the way."""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from reflexio.agents.memory import InMemoryMemory, Memory
from reflexio.agents.meter import Meter
from reflexio.agents.model import Message, Model
from reflexio.agents.tools import Tool
from reflexio.agents.values import NO_USAGE, Usage

if TYPE_CHECKING:
    from reflexio.agents.agent import Agent

NOTHING: Mapping[str, Any] = MappingProxyType({})


class EventKind(StrEnum):
    STARTED = "started"
    MODEL_CHUNK = "model_chunk"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    BUDGET_EXCEEDED = "budget_exceeded"
    ARCHITECTURE_EVENT = "architecture_event"
    ERROR = "error"
    COMPLETED = "completed"


Payload = dict[str, Any]


class Event:
    """Something that happened in a run. An architecture's own events have their name in the payload.

    A payload may be given as a function that makes it: most events of most runs are read by nobody.
    """

    __slots__ = ("_payload", "_time", "kind", "session_id")

    def __init__(self, kind: EventKind, session_id: str, payload: Payload | Callable[[], Payload]) -> None:
        self.kind = kind
        self.session_id = session_id
        self._time = time.time()
        self._payload = payload

    @property
    def at(self) -> datetime:
        return datetime.fromtimestamp(self._time, UTC)

    @property
    def payload(self) -> Payload:
        if not isinstance(self._payload, dict):
            self._payload = self._payload()
        return self._payload

    def to_dict(self) -> Payload:
        return {
            "kind": self.kind.value,
            "session_id": self.session_id,
            "at": self.at.isoformat(),
            "payload": self.payload,
        }

    def __repr__(self) -> str:
        return f"Event({self.kind.value!r}, {self.session_id!r}, {self.payload!r})"


@dataclass(frozen=True, slots=True)
class RunContext:
    """Whose run it is."""

    user_id: str | None = None
    session_id: str | None = None
    run_id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class AgentSession:
    """The state of one run. Architectures change it; `output` is what the run answers with."""

    id: str
    instructions: str
    messages: list[Message] = field(default_factory=list)
    turns: int = 0
    output: str = ""
    cumulative_usage: Usage = NO_USAGE
    interrupted: bool = False
    interruption_reason: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def book(self, usage: Usage) -> None:
        """Counts model calls: each is a turn."""
        self.cumulative_usage = self.cumulative_usage + usage
        self.turns += usage.calls

    def interrupt(self, reason: str) -> None:
        self.interrupted = True
        self.interruption_reason = reason


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What an architecture may use. The budget is one meter for the whole run, whoever spends."""

    model: Model
    memory: Memory = field(default_factory=InMemoryMemory)
    tools: Mapping[str, Tool] = field(default_factory=dict)
    budget: Meter = field(default_factory=Meter)
    max_turns: int = 50
    streaming: bool = False
    context: RunContext = field(default_factory=RunContext)

    def with_memory(self, memory: Memory) -> "Dependencies":
        return Dependencies(self.model, memory, self.tools, self.budget, self.max_turns, self.streaming, self.context)


@runtime_checkable
class Architecture(Protocol):
    """A way to work on a prompt. `run` is an async generator that leaves its answer in `session.output`.

    One that reads `deps.memory.working()` says so with `reads_memory = True`. Others get what they should know at the
    end of `session.instructions`.
    """

    name: str

    def run(self, session: AgentSession, deps: Dependencies, prompt: str) -> AsyncIterator[Event]: ...

    def declared_workers(self) -> "dict[str, Agent]": ...


def budget_exceeded(session: AgentSession, deps: Dependencies, limit: str) -> Event:
    """Interrupts the session, and says so."""
    session.interrupt(f"budget:{limit}")
    used = deps.budget.usage
    status = {"limit": limit, "calls": used.calls, "tokens": used.tokens, "cost_usd": used.cost_usd}
    return Event(EventKind.BUDGET_EXCEEDED, session.id, {"status": status})
