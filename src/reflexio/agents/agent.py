"""An agent: instructions, a model, tools, a memory, and an architecture that goes about the task."""

import secrets
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from reflexio.agents.architecture.base import (
    NOTHING,
    AgentSession,
    Architecture,
    Dependencies,
    Event,
    EventKind,
    RunContext,
)
from reflexio.agents.architecture.react import ReAct
from reflexio.agents.architecture.reflexion import Reflexion
from reflexio.agents.attempt import Attempt, AttemptFailed
from reflexio.agents.calling import closing
from reflexio.agents.doors import run_alone
from reflexio.agents.memory import InMemoryMemory, Memory
from reflexio.agents.meter import UNLIMITED, Meter
from reflexio.agents.model import Model
from reflexio.agents.opened import named
from reflexio.agents.tools import Tool, tools_of
from reflexio.agents.values import Budget
from reflexio.errors import InvalidRequest

ARCHITECTURES: dict[str, Callable[[], Architecture]] = {"react": ReAct, "reflexion": Reflexion}


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run answered and cost. `interrupted` says that a limit ended it: turns or budget."""

    session_id: str
    output: str
    turns: int
    tokens_in: int
    tokens_out: int
    cost_usd: float
    started_at: datetime
    finished_at: datetime
    interrupted: bool = False
    interruption_reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        told = {name: getattr(self, name) for name in self.__slots__}
        return {**told, "started_at": self.started_at.isoformat(), "finished_at": self.finished_at.isoformat()}


class Agent:
    """Instructions, a model, tools and a memory, and an architecture that runs prompts with them.

    One agent serves many runs at once; what a run changes is its own.

    `model` is a name ("openai:gpt-5-mini", its key comes from the environment) or any `Model`. `tools` are plain typed
    functions. `budget` is for each run. `architecture` is "react" (the default), "reflexion", or an instance.

    >>> from reflexio.agents import ScriptedModel
    >>> Agent("Be brief.", model=ScriptedModel(["Hello."])).run_sync("Greet me.").output
    'Hello.'
    """

    def __init__(
        self,
        instructions: str = "",
        *,
        model: str | Model,
        tools: Sequence[Callable[..., Any] | Tool] = (),
        memory: Memory | None = None,
        budget: Budget | None = None,
        max_turns: int = 50,
        architecture: Architecture | str | None = None,
    ) -> None:
        if max_turns < 1:
            raise ValueError("max_turns must be >= 1")
        self._instructions = instructions
        self._model: Model = named(model)
        self._tools = tools_of(tools)
        self.memory = InMemoryMemory() if memory is None else memory
        self._budget = budget or UNLIMITED
        self._max_turns = max_turns
        self.architecture = _architecture(architecture)

    @property
    def model_name(self) -> str:
        return self._model.name

    async def run(
        self,
        prompt: str,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        metadata: Mapping[str, Any] = NOTHING,
    ) -> RunResult:
        context = _context(user_id, session_id, metadata)
        session = AgentSession(context.session_id or "", self._instructions)
        deps = self._dependencies(context, streaming=False)
        began = datetime.now(UTC)
        async with closing(self.architecture.run(session, deps, prompt)) as events:
            async for _ in events:
                continue
        return _result(session, began)

    def run_sync(
        self,
        prompt: str,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        metadata: Mapping[str, Any] = NOTHING,
    ) -> RunResult:
        """`run` for programs without an event loop."""
        work = self.run(prompt, user_id=user_id, session_id=session_id, metadata=metadata)
        result = run_alone(work, "run")
        assert isinstance(result, RunResult)
        return result

    async def stream(
        self,
        prompt: str,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        metadata: Mapping[str, Any] = NOTHING,
    ) -> AsyncGenerator[Event, None]:
        """Events while they happen, from `started` to `completed`. Leaving earlier ends the run."""
        context = _context(user_id, session_id, metadata)
        session = AgentSession(context.session_id or "", self._instructions)
        deps = self._dependencies(context, streaming=True)
        began = datetime.now(UTC)
        yield Event(EventKind.STARTED, session.id, {"prompt": prompt})
        try:
            async with closing(self.architecture.run(session, deps, prompt)) as events:
                async for event in events:
                    yield event
        except Exception as error:
            yield Event(EventKind.ERROR, session.id, {"type": type(error).__name__, "message": str(error)})
            raise
        yield Event(EventKind.COMPLETED, session.id, {"result": _result(session, began).to_dict()})

    async def __call__(self, task: str, attempt: Attempt) -> str:
        """The agent as one attempt of `reflexion()`: its lessons stand below the instructions.

        What it spends counts for that run, and without a budget of its own it keeps that run's.
        """
        instructions = "\n\n".join(part for part in (self._instructions, attempt.text()) if part)
        session = AgentSession(attempt.run_id, instructions)
        own = self._budget != UNLIMITED
        context = RunContext(attempt.user_id, session.id, attempt.run_id)
        deps = self._dependencies(context, streaming=False, meter=None if own else attempt.meter)
        try:
            async with closing(self.architecture.run(session, deps, task)) as events:
                async for _ in events:
                    continue
        finally:
            if own:
                attempt.spend(deps.budget.usage)
        if session.interrupted:
            raise AttemptFailed(f"It did not come to an answer: {session.interruption_reason}.")
        return session.output

    async def aclose(self) -> None:
        """Closes the connection of a model that was given by name."""
        close = getattr(self._model, "aclose", None)
        if close is not None:
            await close()

    def _dependencies(self, context: RunContext, *, streaming: bool, meter: Meter | None = None) -> Dependencies:
        budget = Meter(self._budget) if meter is None else meter
        return Dependencies(self._model, self.memory, self._tools, budget, self._max_turns, streaming, context)


def _architecture(wanted: Architecture | str | None) -> Architecture:
    if wanted is None:
        return ReAct()
    if not isinstance(wanted, str):
        return wanted
    if wanted not in ARCHITECTURES:
        raise InvalidRequest(f"There is no architecture {wanted!r}; there are: {', '.join(sorted(ARCHITECTURES))}.")
    return ARCHITECTURES[wanted]()


def _context(user_id: str | None, session_id: str | None, metadata: Mapping[str, Any]) -> RunContext:
    run_id = f"run_{secrets.token_hex(8)}"
    return RunContext(user_id, session_id or f"session_{secrets.token_hex(8)}", run_id, metadata)


def _result(session: AgentSession, began: datetime) -> RunResult:
    usage = session.cumulative_usage
    return RunResult(
        session.id,
        session.output,
        session.turns,
        usage.input_tokens,
        usage.output_tokens,
        usage.cost_usd,
        began,
        datetime.now(UTC),
        session.interrupted,
        session.interruption_reason,
    )
