"""An agent: instructions, a model, tools, a memory, and the architecture that works on prompts with them."""

import secrets
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, TypeAlias

from reflexio.agents.api import new_run_id, run_in_new_loop
from reflexio.agents.architecture import (
    AgentSession,
    Architecture,
    Dependencies,
    Event,
    EventKind,
    ReAct,
    RunContext,
    describe_step,
)
from reflexio.agents.attempt import Attempt, AttemptFailed
from reflexio.agents.budget import UNLIMITED, Budget, Meter
from reflexio.agents.calls import check_part, closing
from reflexio.agents.memory import InMemoryMemory, Memory
from reflexio.agents.model import Model, check_model, resolve_model
from reflexio.agents.reflexion_architecture import Reflexion
from reflexio.agents.tools import Tool, tools_by_name
from reflexio.errors import InvalidRequest

Metadata: TypeAlias = Mapping[str, Any]
NOTHING: Metadata = MappingProxyType({})
ARCHITECTURES: dict[str, Callable[[], Architecture]] = {"react": ReAct, "reflexion": Reflexion}


@dataclass(frozen=True, slots=True)
class RunResult:
    """The answer of a run and what it cost. `interrupted` says that a limit ended it: turns or budget.

    `stop_reason` is "answered", or why it was interrupted, or with Reflexion that of a `ReflexionResult`. `passed` and
    `score` are the evaluator's; None when the architecture evaluates nothing.
    """

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
    passed: bool | None = None
    score: float | None = None
    stop_reason: str = "answered"

    def to_dict(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {**fields, "started_at": self.started_at.isoformat(), "finished_at": self.finished_at.isoformat()}


class Agent:
    """Instructions, a model, tools and a memory, and an architecture that runs prompts with them.

    One agent can serve many concurrent runs; each run has its own state.

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
        check_part("memory", memory, Memory, "a memory, such as InMemoryMemory()")
        check_part("budget", budget, Budget, "a Budget(…)")
        self._instructions = instructions
        self._model: Model = resolve_model(model)
        check_model("model", self._model)
        self._tools = tools_by_name(tools)
        self.memory = InMemoryMemory() if memory is None else memory
        self._budget = budget or UNLIMITED
        self._max_turns = max_turns
        self.architecture = _resolve_architecture(architecture)

    @property
    def model_name(self) -> str:
        return self._model.name

    async def run(
        self, prompt: str, *, user_id: str | None = None, session_id: str | None = None, metadata: Metadata = NOTHING
    ) -> RunResult:
        session, deps = self._start(user_id, session_id, metadata, streaming=False)
        started_at = datetime.now(UTC)
        await self._finish(session, deps, prompt)
        return _result(session, started_at)

    def run_sync(
        self, prompt: str, *, user_id: str | None = None, session_id: str | None = None, metadata: Metadata = NOTHING
    ) -> RunResult:
        """`run` for programs without an event loop."""
        work = self.run(prompt, user_id=user_id, session_id=session_id, metadata=metadata)
        result = run_in_new_loop(work, "run")
        assert isinstance(result, RunResult)
        return result

    async def stream(
        self, prompt: str, *, user_id: str | None = None, session_id: str | None = None, metadata: Metadata = NOTHING
    ) -> AsyncGenerator[Event, None]:
        """Events as they happen, from `started` to `completed`. Closing the stream earlier ends the run."""
        session, deps = self._start(user_id, session_id, metadata, streaming=True)
        started_at = datetime.now(UTC)
        yield Event(EventKind.STARTED, session.id, {"prompt": prompt})
        try:
            async with closing(self.architecture.run(session, deps, prompt)) as events:
                async for event in events:
                    yield event
        except Exception as error:
            yield Event(EventKind.ERROR, session.id, {"type": type(error).__name__, "message": str(error)})
            raise
        yield Event(EventKind.COMPLETED, session.id, {"result": _result(session, started_at).to_dict()})

    async def __call__(self, task: str, attempt: Attempt) -> str:
        """The agent as one attempt of `reflexion()`: the lessons follow its instructions.

        What it spends counts for that run, and without a budget of its own it uses that run's.
        """
        instructions = "\n\n".join(part for part in (self._instructions, attempt.text()) if part)
        session = AgentSession(attempt.run_id, instructions)
        has_budget = self._budget != UNLIMITED
        meter = Meter(self._budget) if has_budget else attempt.meter
        deps = self._dependencies(RunContext(attempt.user_id, session.id, attempt.run_id), meter, streaming=False)
        try:
            await self._finish(session, deps, task, attempt.steps)
        finally:
            if has_budget:
                attempt.spend(meter.usage)
        if session.interrupted:
            raise AttemptFailed(f"It did not come to an answer: {session.interruption_reason}.")
        return session.output

    async def aclose(self) -> None:
        """Closes the connection of a model that was given by name."""
        close = getattr(self._model, "aclose", None)
        if close is not None:
            await close()

    def _start(
        self, user_id: str | None, session_id: str | None, metadata: Metadata, *, streaming: bool
    ) -> tuple[AgentSession, Dependencies]:
        session = AgentSession(session_id or f"session_{secrets.token_hex(8)}", self._instructions)
        context = RunContext(user_id, session.id, new_run_id(), metadata)
        return session, self._dependencies(context, Meter(self._budget), streaming=streaming)

    def _dependencies(self, context: RunContext, meter: Meter, *, streaming: bool) -> Dependencies:
        return Dependencies(self._model, self.memory, self._tools, meter, self._max_turns, streaming, context)

    async def _finish(
        self, session: AgentSession, deps: Dependencies, prompt: str, steps: list[str] | None = None
    ) -> None:
        """Runs the architecture to its end, and notes the calls of tools in `steps`; nobody reads the events."""
        async with closing(self.architecture.run(session, deps, prompt)) as events:
            async for event in events:
                if steps is not None and (step := describe_step(event)):
                    steps.append(step)


def _resolve_architecture(choice: Architecture | str | None) -> Architecture:
    if choice is None:
        return ReAct()
    if not isinstance(choice, str):
        names = ", ".join(map(repr, sorted(ARCHITECTURES)))
        check_part("architecture", choice, Architecture, f"one of {names}, or an architecture, such as Reflexion(…)")
        return choice
    if choice not in ARCHITECTURES:
        raise InvalidRequest(f"There is no architecture {choice!r}; there are: {', '.join(sorted(ARCHITECTURES))}.")
    return ARCHITECTURES[choice]()


def _result(session: AgentSession, started_at: datetime) -> RunResult:
    usage = session.cumulative_usage
    known = session.id, session.output, session.turns, usage.input_tokens, usage.output_tokens, usage.cost_usd
    why = session.interruption_reason
    stop_reason = session.stop_reason or why or "answered"
    finished_at = datetime.now(UTC)
    return RunResult(
        *known, started_at, finished_at, session.interrupted, why, session.passed, session.score, stop_reason
    )
