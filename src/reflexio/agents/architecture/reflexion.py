"""Reflexion: verbal reinforcement learning (Shinn et al. 2023, https://arxiv.org/abs/2303.11366) as an architecture.

Another architecture works on the prompt; an evaluator scores what came out; below the threshold a reflector writes one
sentence of advice for the next attempt. The engine is that of `reflexion()`: here are only a session, its memory and
its model.
"""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from reflexio.agents.architecture.base import (
    AgentSession,
    Architecture,
    Dependencies,
    Event,
    EventKind,
    budget_exceeded,
)
from reflexio.agents.architecture.blocks import BlockLessons
from reflexio.agents.architecture.react import ReAct
from reflexio.agents.asking import say
from reflexio.agents.attempt import Attempt, AttemptRecord
from reflexio.agents.bullets import bullet
from reflexio.agents.doors import Options, check, new_run_id, spends, warn_of_self_judgement
from reflexio.agents.evaluators.judge import verdict_in
from reflexio.agents.evaluators.outcome import Evaluator, evaluating, guarded
from reflexio.agents.events import LessonsRecalled, Progress, ReflexionEvent, Stopped
from reflexio.agents.loop import Run
from reflexio.agents.memory import MemoryBlock, Overlay
from reflexio.agents.plan import Keep, LearnFrom, Plan
from reflexio.agents.prompts import prompt as read_prompt
from reflexio.agents.reflecting import Reflect, reflecting
from reflexio.agents.reflector import failure_told
from reflexio.agents.stores import LessonStore, VectorStore
from reflexio.agents.stores import lesson_store as as_lesson_store
from reflexio.agents.values import Evaluation

if TYPE_CHECKING:
    from reflexio.agents.agent import Agent

DEFAULT_EVALUATOR_PROMPT = read_prompt("evaluate")
DEFAULT_REFLECTOR_PROMPT = read_prompt("reflect")


class Interrupted(Exception):
    """The base architecture ran into its limits; there is nothing to evaluate."""


class Reflexion:
    """Wraps a base architecture (`ReAct` unless given) with evaluator, reflector and memory for lessons.

    Without `lesson_store`, every lesson goes to the user's working block `lessons_block_name` and is shown to all later
    attempts and runs of that user. With one (a `VectorStore` or a `LessonStore`), only the `top_k_lessons` most
    relevant to the prompt are shown.

    The agent's own model evaluates and reflects, with the two prompts; that is cheap and biased. `evaluator` puts
    something better in its place: unit tests, a `Judge` of another model, any function of the output; `reflector`
    likewise. `keep`, `patience`, `min_similarity` and `learn_from` are those of `reflexion()`.
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
        evaluator: Evaluator | Sequence[Evaluator] | None = None,
        reflector: Reflect = None,
        keep: Keep = "best",
        patience: int | None = None,
        min_similarity: float | None = None,
        learn_from: LearnFrom = "failures",
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
        check(rules, top_k="top_k_lessons")
        self._base = ReAct() if base is None else base
        self._evaluator_prompt = evaluator_prompt or DEFAULT_EVALUATOR_PROMPT
        self._reflector_prompt = reflector_prompt or DEFAULT_REFLECTOR_PROMPT
        self._block = lessons_block_name
        self._store = None if lesson_store is None else as_lesson_store(lesson_store)
        self._evaluator = evaluator
        self._reflector = reflector
        # Without a store every lesson of the block is shown.
        self._rules: Any = rules if lesson_store is not None else {**rules, "top_k": sys.maxsize}

    def declared_workers(self) -> "dict[str, Agent]":
        return self._base.declared_workers()

    async def run(self, session: AgentSession, deps: Dependencies, prompt: str) -> AsyncIterator[Event]:
        run, instructions = Run(self._planned(session, deps, prompt), deps.budget), session.instructions
        try:
            async with aclosing(run.events()) as events:
                async for event in events:
                    match event:
                        case Progress(value=Event() as inner):
                            yield inner
                        case LessonsRecalled() if self._store is None:
                            continue  # every lesson of the block is shown anyway
                        case Stopped(result):
                            if result.best is not None:
                                session.output = result.best.output
                            if result.stop_reason == "budget" and not session.interrupted:
                                yield budget_exceeded(session, deps, deps.budget.spent() or "seconds")
                            yield _told(event, session)
                        case _:
                            yield _told(event, session)
        except Interrupted:
            return
        finally:
            session.instructions = instructions

    def _planned(self, session: AgentSession, deps: Dependencies, prompt: str) -> Plan:
        roles = _Roles(self, session, deps, prompt)
        warn_of_self_judgement(deps.model.name, self._evaluator)
        return Plan(
            act=roles.act,
            streams=True,
            answer=roles.answer,
            evaluate=guarded(roles.evaluate, "evaluator"),
            evaluating_spends=self._evaluator is None or spends(self._evaluator),
            reflect=roles.reflect,
            reflecting_spends=self._reflector is None or spends(self._reflector),
            task=prompt,
            run_id=new_run_id(),
            store=BlockLessons(deps.memory, self._block) if self._store is None else self._store,
            user_id=deps.context.user_id,
            **self._rules,
        )


class _Roles:
    """Actor, evaluator and reflector of one run, all on one session."""

    def __init__(self, how: Reflexion, session: AgentSession, deps: Dependencies, prompt: str) -> None:
        self._how = how
        self._session = session
        self._deps = deps
        self._prompt = prompt
        self._instructions = session.instructions
        self._memory = Overlay(deps.memory, how._block)
        self._deps_of_base = deps.with_memory(self._memory)
        self._evaluate = None if how._evaluator is None else evaluating(how._evaluator)
        self._reflect = reflecting(how._reflector)

    def act(self, task: str, attempt: Attempt) -> AsyncIterator[Event]:
        """The base starts afresh; the attempt's lessons stand in its memory, or else in its instructions."""
        base, session = self._how._base, self._session
        lessons = self._memory.content = "\n".join([bullet(each.content) for each in attempt.lessons])
        session.messages = []
        session.instructions = self._instructions
        if lessons and not getattr(base, "reads_memory", False):
            block = MemoryBlock(self._how._block, lessons)
            session.instructions = f"{self._instructions}\n\n{block.format()}".strip()
        return base.run(session, self._deps_of_base, task)

    def answer(self) -> str:
        if self._session.interrupted:
            raise Interrupted(self._session.interruption_reason)
        return self._session.output

    async def evaluate(self, output: Any, attempt: Attempt) -> Evaluation:
        meter = self._deps.budget
        before = meter.usage
        evaluation = await (self._judged if self._evaluate is None else self._evaluate)(output, attempt)
        self._session.book(evaluation.usage)
        if meter.usage is not before:
            self._session.book(meter.usage - before)
        return evaluation

    async def _judged(self, output: Any, attempt: Attempt | None) -> Evaluation:
        number = attempt.number if attempt else 1
        case = f"Task:\n{self._prompt}\n\nAgent output (attempt {number}):\n{output}"
        text, usage = await say(self._deps.model, self._how._evaluator_prompt, case)
        return verdict_in(text, evaluator=self._deps.model.name, usage=usage)

    async def reflect(self, record: AttemptRecord, attempt: Attempt) -> Any:
        if self._reflect is None:
            text, usage = await say(self._deps.model, self._how._reflector_prompt, failure_told(record, self._prompt))
            attempt.spend(usage)
            self._session.book(usage)
            return text
        before = attempt.usage
        try:
            return await self._reflect(record, attempt)
        finally:
            self._session.book(attempt.usage - before)


def _told(event: ReflexionEvent, session: AgentSession) -> Event:
    return Event(EventKind.ARCHITECTURE_EVENT, session.id, event.to_dict)
