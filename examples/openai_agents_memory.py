"""An agent of the OpenAI Agents SDK remembers what a user said in another conversation. Start a server: make serve.

It needs no key: the model is a class. With a model of your own: `Agent("clerk", model="gpt-5-mini", …)`, and
`**memory.openai_agents()` without a `run_config`.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner
from agents.usage import Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

import reflexio

OFFLINE = RunConfig(tracing_disabled=True)


class ScriptedModel(Model):
    """Answers with an emoji until the prompt says otherwise."""

    async def get_response(self, system_instructions: str | None, *_: Any, **__: Any) -> ModelResponse:
        reply = "On its way." if "emoji" in (system_instructions or "") else "On its way! 🎉"
        text = ResponseOutputText(type="output_text", text=reply, annotations=[])
        message = ResponseOutputMessage(id="1", type="message", role="assistant", status="completed", content=[text])
        return ModelResponse(output=[message], usage=Usage(requests=1), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


async def main() -> None:
    agent = Agent("clerk", instructions="You are the agent of a lamp shop.", model=ScriptedModel())

    memory = reflexio.memory(user_id="amira", agent_version="shop-1")
    for message in ("Please never use emojis.", "Where is my lamp?"):
        result = await Runner.run(agent, message, **memory.openai_agents(run_config=OFFLINE))
        print(f"{message} {result.final_output}")
    await memory.finish_async(wait=30)  # the conversation is over; wait until it has been learned from

    memory = reflexio.memory(user_id="amira", agent_version="shop-1")
    result = await Runner.run(agent, "And my second order?", **memory.openai_agents(run_config=OFFLINE))
    print(f"And my second order? {result.final_output}")


if __name__ == "__main__":
    asyncio.run(main())

# > Please never use emojis. On its way! 🎉
# > Where is my lamp? On its way! 🎉
# > And my second order? On its way.
