"""How an agent works on a prompt: the `Architecture` protocol with its session and events, and ReAct, the default.

The other architecture is in `reflexion_architecture.py`.
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from reflexio.agents.attempt import shorten
from reflexio.agents.budget import NO_USAGE, Meter, OutOfTime, Usage
from reflexio.agents.calls import closing
from reflexio.agents.memory import InMemoryMemory, Memory
from reflexio.agents.model import Message, Model, ModelReply, ToolCall, ToolSpec, system_message
from reflexio.agents.tools import Tool, run_tool

if TYPE_CHECKING:
    from reflexio.agents.agent import Agent

Payload = dict[str, Any]
LONGEST_STEP_PART = 200
OUT_OF_TURNS = "max_turns_exceeded"


class EventKind(StrEnum):
    STARTED = "started"
    MODEL_CHUNK = "model_chunk"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    BUDGET_EXCEEDED = "budget_exceeded"
    ARCHITECTURE_EVENT = "architecture_event"
    ERROR = "error"
    COMPLETED = "completed"


class Event:
    """Something that happened in a run. An architecture's own events have their name in the payload.

    A payload may also be a function that builds it: most events of most runs are never read.
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
    """The user, the session and the id of a run."""

    user_id: str | None = None
    session_id: str | None = None
    run_id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class AgentSession:
    """The state of one run. Architectures change it; `output` is the answer of the run.

    An architecture that evaluates its answer also sets `passed`, `score` and `stop_reason`. `messages` may hold an
    earlier conversation, which a prompt continues.
    """

    id: str
    instructions: str
    messages: list[Message] = field(default_factory=list)
    turns: int = 0
    output: str = ""
    cumulative_usage: Usage = NO_USAGE
    interrupted: bool = False
    interruption_reason: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    passed: bool | None = None
    score: float | None = None
    stop_reason: str = ""

    def book(self, usage: Usage) -> None:
        """Counts model calls: each is a turn."""
        self.cumulative_usage = self.cumulative_usage + usage
        self.turns += usage.calls

    def interrupt(self, reason: str) -> None:
        self.interrupted = True
        self.interruption_reason = reason


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What an architecture may use. `budget` is one meter for everything that the run spends."""

    model: Model
    memory: Memory = field(default_factory=InMemoryMemory)
    tools: Mapping[str, Tool] = field(default_factory=dict)
    budget: Meter = field(default_factory=Meter)
    max_turns: int = 50
    streaming: bool = False
    context: RunContext = field(default_factory=RunContext)

    def with_memory(self, memory: Memory) -> "Dependencies":
        return replace(self, memory=memory)


@runtime_checkable
class Architecture(Protocol):
    """A way to work on a prompt. `run` is an async generator that leaves its answer in `session.output`.

    An architecture that reads `deps.memory.working()` says so with `reads_memory = True`. Others find lessons at the
    end of `session.instructions`.
    """

    name: str

    def run(self, session: AgentSession, deps: Dependencies, prompt: str) -> AsyncIterator[Event]: ...

    def declared_workers(self) -> "dict[str, Agent]": ...


def describe_step(event: Event) -> str:
    """The result of a tool's call in one line for a reflector, which shows what was called with what; empty for other
    events."""
    if event.kind is not EventKind.TOOL_RESULT:
        return ""
    result = event.payload.get("result", {})
    args = shorten(json.dumps(result.get("args", {}), ensure_ascii=False, default=str), LONGEST_STEP_PART)
    text = shorten(" ".join(str(result.get("content", "")).split()), LONGEST_STEP_PART)
    return f"- {result.get('name', '')}({args}) {'->' if result.get('ok', True) else 'failed:'} {text}"


def interrupt_by_budget(session: AgentSession, deps: Dependencies, limit: str) -> Event:
    """Interrupts the session, and returns the event that says so."""
    session.interrupt(f"budget:{limit}")
    used = deps.budget.usage
    status = {"limit": limit, "calls": used.calls, "tokens": used.tokens, "cost_usd": used.cost_usd}
    return Event(EventKind.BUDGET_EXCEEDED, session.id, {"status": status})


class ReAct:
    """Asks the model, runs the tools that it calls, and asks again until it answers. The default.

    At most `max_turns` model calls for one prompt; by default the agent's limit.
    """

    name = "react"
    reads_memory = True

    def __init__(self, *, max_turns: int | None = None) -> None:
        if max_turns is not None and max_turns < 1:
            raise ValueError("max_turns must be >= 1")
        self._max_turns = max_turns

    def declared_workers(self) -> "dict[str, Agent]":
        return {}

    async def run(self, session: AgentSession, deps: Dependencies, prompt: str) -> AsyncIterator[Event]:
        session.messages = await _messages_for(session, deps, prompt)
        # The session counts the turns of all attempts; the limit is for this one.
        last_turn = session.turns + (deps.max_turns if self._max_turns is None else self._max_turns)
        try:
            while session.turns < last_turn:
                if limit := deps.budget.reached_limit():
                    yield interrupt_by_budget(session, deps, limit)
                    return
                if deps.streaming:
                    reply = ModelReply("")
                    async with aclosing(_stream_reply(session, deps)) as pieces:
                        async for piece in pieces:
                            if isinstance(piece, ModelReply):
                                reply = piece
                            else:
                                yield Event(EventKind.MODEL_CHUNK, session.id, {"chunk": piece})
                else:
                    reply = await deps.budget.within_time(deps.model.complete(session.messages, tools=_specs(deps)))
                usage = reply.counted_usage
                session.book(usage)
                deps.budget.spend(usage)
                session.messages.append(Message("assistant", reply.text, reply.tool_calls, raw=reply.raw))
                if not reply.tool_calls:
                    session.output = reply.text
                    return
                for call in reply.tool_calls:
                    yield Event(EventKind.TOOL_CALL, session.id, {"call": asdict(call)})
                for event in await deps.budget.within_time(_run_tools(reply.tool_calls, session, deps)):
                    yield event
            session.interrupt(OUT_OF_TURNS)
        except OutOfTime:
            yield interrupt_by_budget(session, deps, "seconds")


def _specs(deps: Dependencies) -> list[ToolSpec]:
    return [tool.spec for tool in deps.tools.values()]


async def _stream_reply(session: AgentSession, deps: Dependencies) -> AsyncGenerator[str | ModelReply, None]:
    async with closing(deps.model.stream(session.messages, tools=_specs(deps))) as pieces:
        while (piece := await deps.budget.within_time(anext(pieces, None))) is not None:
            yield piece


async def _messages_for(session: AgentSession, deps: Dependencies, prompt: str) -> list[Message]:
    """Instructions and memory as they are now, the conversation so far, and the prompt."""
    blocks = await deps.memory.working(user_id=deps.context.user_id)
    messages = [system_message(session.instructions)] if session.instructions else []
    if blocks:
        messages.append(Message("system", "\n\n".join([block.format() for block in blocks])))
    if session.messages:
        messages += _conversation(session.messages, messages)
        # A run that was interrupted before the first reply has left the same prompt.
        if not prompt or messages[-1] == Message("user", prompt):
            return messages
    messages.append(Message("user", prompt))
    return messages


def _conversation(earlier: Sequence[Message], current: Sequence[Message]) -> list[Message]:
    """The earlier messages without those that `current` repeats or renews, and with an answer to every tool call:
    providers refuse a call without one, as an interrupted run leaves it."""
    first_lines = {message.content.partition("\n")[0] for message in current if message.content.startswith("<")}
    kept: list[Message] = []
    open_calls: dict[str, ToolCall] = {}
    for message in earlier:
        if message.role == "system" and (message in current or message.content.partition("\n")[0] in first_lines):
            continue
        if message.role == "tool":
            open_calls.pop(message.tool_call_id, None)
        else:
            kept += _unanswered(open_calls)
            open_calls = {call.id: call for call in message.tool_calls}
        kept.append(message)
    return kept + _unanswered(open_calls)


def _unanswered(calls: Mapping[str, ToolCall]) -> list[Message]:
    return [Message("tool", "The call did not end.", tool_call_id=key, tool_name=calls[key].name) for key in calls]


async def _run_tools(calls: Sequence[ToolCall], session: AgentSession, deps: Dependencies) -> list[Event]:
    """The tools of one turn run concurrently."""
    answers = await asyncio.gather(*(run_tool(call, deps.tools) for call in calls))
    events = []
    for call, (text, worked) in zip(calls, answers, strict=True):
        session.messages.append(Message("tool", text, tool_call_id=call.id, tool_name=call.name))
        result = {"call_id": call.id, "name": call.name, "args": dict(call.args), "content": text, "ok": worked}
        events.append(Event(EventKind.TOOL_RESULT, session.id, {"result": result}))
    return events
