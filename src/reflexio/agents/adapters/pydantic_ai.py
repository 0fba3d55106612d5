"""An agent of pydantic-ai: lessons are passed as additional instructions of the run."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pydantic_ai import capture_run_messages
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.exceptions import UnexpectedModelBehavior, UsageLimitExceeded
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.run import AgentRunResult
from pydantic_ai.usage import RunUsage

from reflexio.agents.attempt import Attempt, AttemptFailed
from reflexio.agents.budget import Usage, price

O = TypeVar("O")  # noqa: E741  the output, as pydantic-ai calls it


def from_pydantic_ai(
    agent: AbstractAgent[Any, O], *, instructions: str = "", **options: Any
) -> Callable[[Any, Attempt], Awaitable[O]]:
    """The agent as a callable for `reflexion()`; `options` are those of `agent.run`, such as `deps`.

    An answer that pydantic-ai rejects (not of the output type, or beyond the limits) fails the attempt.

    >>> result = await reflexion(from_pydantic_ai(agent), "Greet me.", evaluate=is_polite)  # doctest: +SKIP
    """

    async def run(task: Any, attempt: Attempt) -> O:
        texts = "\n\n".join(text for text in (instructions, attempt.text()) if text)
        usage, old = RunUsage(), len(options.get("message_history") or ())
        with capture_run_messages() as messages:
            try:
                result: AgentRunResult[O] = await agent.run(task, instructions=texts or None, usage=usage, **options)
            except (UnexpectedModelBehavior, UsageLimitExceeded) as error:
                raise AttemptFailed(str(error)) from error
            finally:
                cost = sum(map(_cost, messages[old:]))
                attempt.spend(Usage(usage.requests, usage.input_tokens, usage.output_tokens, cost))
        return result.output

    return run


def _cost(message: ModelMessage) -> float:
    if not isinstance(message, ModelResponse) or not message.model_name:
        return 0.0
    name = f"{message.provider_name or ''}:{message.model_name}"
    return price(name, message.usage.input_tokens, message.usage.output_tokens)
