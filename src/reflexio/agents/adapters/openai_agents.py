"""An agent of the OpenAI Agents SDK: lessons stand at the end of its instructions."""

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
from reflexio.agents.price import price
from reflexio.agents.values import Usage

FAILURES = (InputGuardrailTripwireTriggered, OutputGuardrailTripwireTriggered, MaxTurnsExceeded, ModelBehaviorError)


def from_openai_agents(agent: Agent[Any], **options: Any) -> Callable[[Any, Attempt], Awaitable[Any]]:
    """The agent as a callable for `reflexion()`; `options` are those of `Runner.run`, as `context` or `run_config`.

    A guardrail that trips, too many turns and output of another type fail the attempt; what the guardrail said
    is the feedback.

    >>> result = await reflexion(from_openai_agents(agent), "Greet me.", evaluate=is_polite)  # doctest: +SKIP
    """

    async def run(task: Any, attempt: Attempt) -> Any:
        taught = agent.clone(instructions=_with(agent.instructions, attempt.text()))
        model = _model_name(agent, options.get("run_config"))
        try:
            result = await Runner.run(taught, task, **options)
        except FAILURES as error:
            _spend(attempt, model, error.run_data.context_wrapper if error.run_data else None)
            raise AttemptFailed(_words(error)) from error
        _spend(attempt, model, result.context_wrapper)
        return result.final_output

    return run


def _with(instructions: Any, lessons: str) -> Any:
    """Instructions may be a function; it is asked anew for each run, and the lessons come after its answer."""
    if not lessons:
        return instructions
    if not callable(instructions):
        return "\n\n".join(each for each in (instructions, lessons) if each)

    async def told(context: RunContextWrapper[Any], agent: Agent[Any]) -> str:
        said = instructions(context, agent)
        return f"{await said if inspect.isawaitable(said) else said}\n\n{lessons}"

    return told


def _words(error: AgentsException) -> str:
    if isinstance(error, InputGuardrailTripwireTriggered | OutputGuardrailTripwireTriggered):
        said = error.guardrail_result.output.output_info
        return str(said) if said else f"The guardrail {error.guardrail_result.guardrail.get_name()!r} stopped it."
    return str(error)


def _model_name(agent: Agent[Any], config: RunConfig | None) -> str:
    """What the run is priced by; agents that it is handed over to count as if they had the same model."""
    model = (config and config.model) or agent.model or get_default_model()
    return str(getattr(model, "model", model)).rpartition("/")[2]


def _spend(attempt: Attempt, model: str, context: RunContextWrapper[Any] | None) -> None:
    if context is not None:
        usage = context.usage
        cost = price(f":{model}", usage.input_tokens, usage.output_tokens)
        attempt.spend(Usage(usage.requests, usage.input_tokens, usage.output_tokens, cost))
