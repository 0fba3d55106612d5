"""An agent of the OpenAI Agents SDK: lessons follow its instructions."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from agents import Agent, AgentsException, RunConfig, RunContextWrapper, Runner
from agents.exceptions import (
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    ModelBehaviorError,
    OutputGuardrailTripwireTriggered,
)
from agents.models import get_default_model

from reflexio.agents.attempt import Attempt, AttemptFailed
from reflexio.agents.budget import Usage, price

FAILURES = (InputGuardrailTripwireTriggered, OutputGuardrailTripwireTriggered, MaxTurnsExceeded, ModelBehaviorError)


def from_openai_agents(agent: Agent[Any], **options: Any) -> Callable[[Any, Attempt], Awaitable[Any]]:
    """The agent as a callable for `reflexion()`; `options` are those of `Runner.run`, such as `context`.

    A guardrail that trips, too many turns and output of the wrong type fail the attempt; the guardrail's output is the
    feedback.

    >>> result = await reflexion(from_openai_agents(agent), "Greet me.", evaluate=is_polite)  # doctest: +SKIP
    """

    async def run(task: Any, attempt: Attempt) -> Any:
        with_lessons = agent.clone(instructions=_add_lessons(agent.instructions, attempt.text()))
        model = _model_name(agent, options.get("run_config"))
        try:
            result = await Runner.run(with_lessons, task, **options)
        except FAILURES as error:
            _spend(attempt, model, error.run_data.context_wrapper if error.run_data else None)
            raise AttemptFailed(_feedback(error)) from error
        _spend(attempt, model, result.context_wrapper)
        return result.final_output

    return run


def _add_lessons(instructions: Any, lessons: str) -> Any:
    """Instructions may be a function; it is called for each run, and the lessons follow its answer."""
    if not lessons:
        return instructions
    if not callable(instructions):
        return "\n\n".join(part for part in (instructions, lessons) if part)

    async def with_lessons(context: RunContextWrapper[Any], agent: Agent[Any]) -> str:
        text = instructions(context, agent)
        return f"{await text if inspect.isawaitable(text) else text}\n\n{lessons}"

    return with_lessons


def _feedback(error: AgentsException) -> str:
    if isinstance(error, InputGuardrailTripwireTriggered | OutputGuardrailTripwireTriggered):
        info = error.guardrail_result.output.output_info
        return str(info) if info else f"The guardrail {error.guardrail_result.guardrail.get_name()!r} stopped it."
    return str(error)


def _model_name(agent: Agent[Any], config: RunConfig | None) -> str:
    """The model that prices the run; agents that take over by a handoff count as if they had the same model."""
    model = (config and config.model) or agent.model or get_default_model()
    return str(getattr(model, "model", model)).rpartition("/")[2]


def _spend(attempt: Attempt, model: str, context: RunContextWrapper[Any] | None) -> None:
    if context is not None:
        tokens = context.usage.input_tokens, context.usage.output_tokens
        attempt.spend(Usage(context.usage.requests, *tokens, price(f":{model}", *tokens)))
