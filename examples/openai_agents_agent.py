"""An agent of the OpenAI Agents SDK learns from its guardrail. Runs offline: the model is a class.

With a model of your own: `Agent("clerk", model="gpt-5-mini", …)`, and no `run_config`.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, GuardrailFunctionOutput, Model, ModelResponse, RunConfig, RunContextWrapper, output_guardrail
from agents.usage import Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from reflexio.agents import MemoryLessons, reflexion
from reflexio.agents.adapters import from_openai_agents


class ScriptedModel(Model):
    """Writes dates in words until a lesson says otherwise."""

    async def get_response(self, system_instructions: str | None, *_: Any, **__: Any) -> ModelResponse:
        reply = "2026-11-16" if "yyyy-mm-dd" in (system_instructions or "") else "16 November 2026"
        text = ResponseOutputText(type="output_text", text=reply, annotations=[])
        message = ResponseOutputMessage(id="1", type="message", role="assistant", status="completed", content=[text])
        return ModelResponse(output=[message], usage=Usage(requests=1), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


@output_guardrail
async def is_iso(context: RunContextWrapper[Any], agent: Agent[Any], output: str) -> GuardrailFunctionOutput:
    fits = bool(re.fullmatch(r"\d{4}-\d\d-\d\d", output))
    return GuardrailFunctionOutput("Write the date as yyyy-mm-dd.", tripwire_triggered=not fits)


async def main() -> None:
    instructions = "Answer with a date and nothing else."
    agent = Agent("clerk", instructions=instructions, model=ScriptedModel(), output_guardrails=[is_iso])
    run = from_openai_agents(agent, run_config=RunConfig(tracing_disabled=True))
    lessons = MemoryLessons()
    for task in ("When was the order placed?", "When was the order sent?"):
        result = await reflexion(run, task, evaluate=bool, lessons=lessons)
        print(task, result.output, f"({len(result.attempts)} attempts)")


if __name__ == "__main__":
    asyncio.run(main())

# > When was the order placed? 2026-11-16 (2 attempts)
# > When was the order sent? 2026-11-16 (1 attempts)
