"""An agent of pydantic-ai remembers what a user said in another conversation. Start a server first: make serve.

It needs no key: the model is a function. With a model of your own: `Agent("openai:gpt-5-mini", instructions=…)`.
"""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import reflexio


def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Answers with an emoji until the prompt says otherwise."""
    request = messages[-1]
    instructions = request.instructions if isinstance(request, ModelRequest) else ""
    return ModelResponse([TextPart("On its way." if "emoji" in (instructions or "") else "On its way! 🎉")])


async def main() -> None:
    agent = Agent(FunctionModel(model), instructions="You are the agent of a lamp shop.")

    memory = reflexio.memory(user_id="amira", agent_version="shop-1")
    for message in ("Please never use emojis.", "Where is my lamp?"):
        result = await agent.run(message, capabilities=[memory.pydantic_ai()])
        print(f"{message} {result.output}")
    await memory.finish_async(wait=30)  # the conversation is over; wait until it has been learned from

    memory = reflexio.memory(user_id="amira", agent_version="shop-1")
    result = await agent.run("And my second order?", capabilities=[memory.pydantic_ai()])
    print(f"And my second order? {result.output}")


if __name__ == "__main__":
    asyncio.run(main())

# > Please never use emojis. On its way! 🎉
# > Where is my lamp? On its way! 🎉
# > And my second order? On its way.
