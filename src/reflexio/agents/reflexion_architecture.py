"""Reflexion: verbal reinforcement learning (Shinn et al. 2023, https://arxiv.org/abs/2303.11366) as an architecture.

Another architecture works on the prompt; an evaluator scores its output; below the threshold a reflector writes one
sentence of advice for the next attempt. `loop.py` decides when to go on and what to keep; this module connects it
with a session, its memory and its model.
"""

import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from reflexio.agents.api import Options, Reflect, as_reflect, check_options, new_run_id, spends, warn_of_self_judgement
from reflexio.agents.architecture import (
    OUT_OF_TURNS,
    AgentSession,
    Architecture,
    Dependencies,
    Event,
    EventKind,
    ReAct,
    describe_step,
    interrupt_by_budget,
)
from reflexio.agents.attempt import Attempt, AttemptFailed, AttemptRecord, Evaluation, bullet
from reflexio.agents.budget import OutOfBudget
from reflexio.agents.calls import check_part, closing
from reflexio.agents.evaluators.evaluation import Evaluators, as_evaluate, guard
from reflexio.agents.evaluators.judge import read_answer
from reflexio.agents.events import LessonsRecalled, Progress, ReflexionEvent, ReflexionResult, Stopped
from reflexio.agents.lessons.store import LessonStore, as_lesson_store
from reflexio.agents.loop import Keep, LearnFrom, ReflexionLoop, RunPlan
from reflexio.agents.memory import BlockLessons, MemoryBlock, MemoryOverlay
from reflexio.agents.model import Model, ask_text, check_model, resolve_model
from reflexio.agents.model import prompt as read_prompt
from reflexio.agents.reflector import describe_failure
from reflexio.agents.vectors.store import VectorStore

if TYPE_CHECKING:
    from reflexio.agents.agent import Agent

DEFAULT_EVALUATOR_PROMPT = read_prompt("evaluate")
DEFAULT_REFLECTOR_PROMPT = read_prompt("reflect")


class Interrupted(Exception):
    """The base architecture was interrupted for a reason of its own; there is nothing to evaluate."""


class Reflexion:
    """Wraps a base architecture (by default `ReAct`) with an evaluator, a reflector and a memory for lessons.

    Without `lesson_store`, every lesson goes to the user's working block `lessons_block_name` and is shown to all later
    attempts and runs of that user. With one (a `VectorStore` or a `LessonStore`), only the `top_k_lessons` most
    relevant to the prompt are shown.

    By default the agent's own model evaluates and reflects, with the two prompts; that is cheap and biased. `evaluator`
    replaces it: unit tests, a `Judge` with another model, any function of the output; so does `reflector`.
    `evaluator_model` evaluates with the same prompt and another model. `max_lessons` limits the block to the newest.
    An attempt that runs out of turns has failed, and the next one follows.
    `keep`, `patience`, `min_similarity` and `learn_from` are those of `reflexion()`.
    """

    name = "reflexion"
    reads_memory = True

    def __init__(
        self,
        *,
        base: Architecture | None = None,
        max_attempts: int = 3,
        threshold: float = 0.8,
        evaluator_prompt: str | None = None,
        reflector_prompt: str | None = None,
        lessons_block_name: str = "reflexion_lessons",
        lesson_store: VectorStore | LessonStore | None = None,
        top_k_lessons: int = 5,
        evaluator: Evaluators | None = None,
        reflector: Reflect = None,
        keep: Keep = "best",
        patience: int | None = None,
        min_similarity: float | None = None,
        learn_from: LearnFrom = "failures",
        evaluator_model: str | Model | None = None,
        max_lessons: int | None = None,
    ) -> None:
        rules = Options(
            max_attempts=max_attempts,
            threshold=threshold,
            top_k=top_k_lessons,
            keep=keep,
            patience=patience,
            min_similarity=min_similarity,
            learn_from=learn_from,
        )
        check_options(rules, top_k="top_k_lessons")
        if max_lessons is not None and max_lessons < 1:
            raise ValueError("max_lessons must be >= 1")
        if evaluator is not None and evaluator_model is not None:
            raise ValueError("Give evaluator or evaluator_model, not both; Judge(model) is an evaluator.")
        check_part("base", base, Architecture, "an architecture (name, run, declared_workers), such as ReAct()")
        for name, prompt in (("evaluator_prompt", evaluator_prompt), ("reflector_prompt", reflector_prompt)):
            check_part(name, prompt, str, "the text of the prompt, as in Path(…).read_text()")
        check_part("lessons_block_name", lessons_block_name, str, "a name")
        self.base: Architecture = ReAct() if base is None else base
        self.evaluator_model: Model | None = None if evaluator_model is None else resolve_model(evaluator_model)
        if self.evaluator_model is not None:
            check_model("evaluator_model", self.evaluator_model)
        self.max_lessons = max_lessons
        self.evaluator_prompt = evaluator_prompt or DEFAULT_EVALUATOR_PROMPT
        self.reflector_prompt = reflector_prompt or DEFAULT_REFLECTOR_PROMPT
        self.lessons_block_name = lessons_block_name
        self.evaluator = evaluator
        self.reflector = reflector
        self.evaluate = None if evaluator is None else as_evaluate(evaluator, "evaluator")
        self.reflect = as_reflect(reflector, "reflector")
        self._store = None if lesson_store is None else as_lesson_store(lesson_store)
        # Without a store every lesson of the block is shown.
        self._rules: Any = rules if lesson_store is not None else {**rules, "top_k": sys.maxsize}

    def declared_workers(self) -> "dict[str, Agent]":
        return self.base.declared_workers()

    async def run(self, session: AgentSession, deps: Dependencies, prompt: str) -> AsyncIterator[Event]:
        loop, instructions = ReflexionLoop(self._plan(session, deps, prompt), deps.budget), session.instructions
        try:
            async with aclosing(loop.events()) as events:
                async for event in events:
                    match event:
                        case Progress(value=Event() as inner):
                            yield inner
                        case LessonsRecalled() if self._store is None:
                            continue  # every lesson of the block is shown anyway
                        case Stopped(result):
                            _conclude(session, result)
                            if result.stop_reason == "budget" and not session.interrupted:
                                yield interrupt_by_budget(session, deps, deps.budget.reached_limit() or "seconds")
                            yield _wrap(event, session)
                        case _:
                            yield _wrap(event, session)
        except Interrupted:
            return
        finally:
            session.instructions = instructions

    def _plan(self, session: AgentSession, deps: Dependencies, prompt: str) -> RunPlan:
        roles = _Roles(self, session, deps, prompt)
        warn_of_self_judgement(deps.model.name, self.evaluator)
        return RunPlan(
            act=roles.act,
            streams=True,
            answer=roles.answer,
            evaluate=guard(roles.evaluate, "evaluator"),
            evaluating_spends=self.evaluator is None or spends(self.evaluator),
            reflect=roles.reflect,
            reflecting_spends=self.reflector is None or spends(self.reflector),
            task=prompt,
            run_id=new_run_id(),
            store=self._store or BlockLessons(deps.memory, self.lessons_block_name, self.max_lessons),
            user_id=deps.context.user_id,
            **self._rules,
        )


class _Roles:
    """Actor, evaluator and reflector of one run, all on one session."""

    def __init__(self, config: Reflexion, session: AgentSession, deps: Dependencies, prompt: str) -> None:
        self._config, self._session, self._deps, self._prompt = config, session, deps, prompt
        self._instructions = session.instructions
        self._memory = MemoryOverlay(deps.memory, config.lessons_block_name)
        self._base_deps = deps.with_memory(self._memory)
        self._history = list(session.messages)
        self._evaluate = config.evaluate or self._self_evaluate
        self._reflect = config.reflect

    def act(self, task: str, attempt: Attempt) -> AsyncIterator[Event]:
        """Starts the base again; the attempt's lessons are in its memory, or else in its instructions."""
        base, session = self._config.base, self._session
        lessons = self._memory.content = "\n".join([bullet(lesson.content) for lesson in attempt.lessons])
        session.messages = list(self._history)
        session.instructions = self._instructions
        session.interrupted, session.interruption_reason, session.output = False, None, ""
        if lessons and not getattr(base, "reads_memory", False):
            block = MemoryBlock(self._config.lessons_block_name, lessons)
            session.instructions = f"{self._instructions}\n\n{block.format()}".strip()
        return self._noting_steps(base.run(session, self._base_deps, task), attempt.steps)

    async def _noting_steps(self, events: AsyncIterator[Event], steps: list[str]) -> AsyncGenerator[Event, None]:
        async with closing(events):
            async for event in events:
                if step := describe_step(event):
                    steps.append(step)
                yield event

    def answer(self) -> str:
        reason = self._session.interruption_reason or ""
        if not self._session.interrupted:
            return self._session.output
        if reason == OUT_OF_TURNS:
            raise AttemptFailed("It used up its turns without coming to an answer.")
        if reason.startswith("budget:"):
            raise OutOfBudget(f"The {reason} was reached during the attempt.")
        raise Interrupted(reason)

    async def evaluate(self, output: Any, attempt: Attempt) -> Evaluation:
        meter = self._deps.budget
        usage_before = meter.usage
        evaluation = await self._evaluate(output, attempt)
        self._session.book(evaluation.usage)
        if meter.usage is not usage_before:
            self._session.book(meter.usage - usage_before)
        return evaluation

    async def _self_evaluate(self, output: Any, attempt: Attempt | None) -> Evaluation:
        number, model = attempt.number if attempt else 1, self._config.evaluator_model or self._deps.model
        case = f"Task:\n{self._prompt}\n\nAgent output (attempt {number}):\n{output}"
        text, usage = await ask_text(model, self._config.evaluator_prompt, case)
        return read_answer(text, evaluator=model.name, usage=usage)

    async def reflect(self, record: AttemptRecord, attempt: Attempt) -> Any:
        if self._reflect is None:
            case = describe_failure(record, self._prompt)
            text, usage = await ask_text(self._deps.model, self._config.reflector_prompt, case)
            attempt.spend(usage)
            self._session.book(usage)
            return text
        usage_before = attempt.usage
        try:
            return await self._reflect(record, attempt)
        finally:
            self._session.book(attempt.usage - usage_before)


def _conclude(session: AgentSession, result: ReflexionResult) -> None:
    session.stop_reason, session.passed, session.score = result.stop_reason, result.passed, result.score
    if result.best is not None:
        session.output = result.best.output
        if session.interruption_reason == OUT_OF_TURNS:  # only an attempt ran out of them, not the run
            session.interrupted, session.interruption_reason = False, None


def _wrap(event: ReflexionEvent, session: AgentSession) -> Event:
    return Event(EventKind.ARCHITECTURE_EVENT, session.id, event.to_dict)
