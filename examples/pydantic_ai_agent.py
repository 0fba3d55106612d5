"""An agent of pydantic-ai learns how dates are written. Runs offline: the model is a function.

With a model of your own: `Agent("openai:gpt-5-mini", instructions=…)`.
"""

import asyncio
import re

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from reflexio.agents import MemoryLessons, reflexion
from reflexio.agents.adapters import from_pydantic_ai


def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Writes dates in words until a lesson says otherwise."""
    request = messages[-1]
    instructions = request.instructions if isinstance(request, ModelRequest) else ""
    return ModelResponse([TextPart("2026-11-16" if "yyyy-mm-dd" in (instructions or "") else "16 November 2026")])


def is_iso(output: str) -> tuple[bool, str]:
    return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", output)), "Write the date as yyyy-mm-dd."


async def main() -> None:
    agent = Agent(FunctionModel(model), instructions="Answer with a date and nothing else.")
    lessons = MemoryLessons()
    for task in ("When was the order placed?", "When was the order sent?"):
        result = await reflexion(from_pydantic_ai(agent), task, evaluate=is_iso, lessons=lessons)
        print(task, result.output, f"({len(result.attempts)} attempts)")


if __name__ == "__main__":
    asyncio.run(main())

# > When was the order placed? 2026-11-16 (2 attempts)
# > When was the order sent? 2026-11-16 (1 attempts)
