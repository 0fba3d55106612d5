"""An agent of pydantic-ai: lessons come to it as further instructions of the run."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pydantic_ai.agent import AbstractAgent
from pydantic_ai.exceptions import UnexpectedModelBehavior, UsageLimitExceeded
from pydantic_ai.run import AgentRunResult
from pydantic_ai.usage import RunUsage

from reflexio.agents.attempt import Attempt, AttemptFailed
from reflexio.agents.values import Usage

O = TypeVar("O")  # noqa: E741  the output, as pydantic-ai calls it


def from_pydantic_ai(
    agent: AbstractAgent[Any, O], *, instructions: str = "", **options: Any
) -> Callable[[Any, Attempt], Awaitable[O]]:
    """The agent as a callable for `reflexion()`; `options` are those of `agent.run`, as `deps` or `usage_limits`.

    An answer that pydantic-ai gives up on (not of the output type, or beyond the limits) fails the attempt.

    >>> result = await reflexion(from_pydantic_ai(agent), "Greet me.", evaluate=is_polite)  # doctest: +SKIP
    """

    async def run(task: Any, attempt: Attempt) -> O:
        told = "\n\n".join(each for each in (instructions, attempt.text()) if each)
        usage = RunUsage()
        try:
            result: AgentRunResult[O] = await agent.run(task, instructions=told or None, usage=usage, **options)
        except (UnexpectedModelBehavior, UsageLimitExceeded) as error:
            raise AttemptFailed(str(error)) from error
        finally:
            attempt.spend(Usage(usage.requests, usage.input_tokens, usage.output_tokens))
        return result.output

    return run
