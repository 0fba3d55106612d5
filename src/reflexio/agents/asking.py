"""One question to one model: structured where the model offers that, else in words."""

from dataclasses import replace
from typing import Any, TypeVar

from pydantic import BaseModel

from reflexio.agents.model import Message, Model, system
from reflexio.agents.price import price
from reflexio.agents.values import Usage
from reflexio.learners.llm.delimiters import Block, cut, delimit
from reflexio.models.learned import Spend
from reflexio.ports.chat import Chat, Messages

A = TypeVar("A", bound=BaseModel)

LONGEST_PART = 20_000


def is_structured(model: Any) -> bool:
    return hasattr(model, "ask")


async def ask(model: Chat, instructions: str, parts: dict[str, str], shape: type[A]) -> tuple[A, Usage]:
    """The parts are text of others and stand behind a fence."""
    blocks = [Block(title, cut(text, LONGEST_PART)) for title, text in parts.items() if text]
    reply = await model.ask(Messages(instructions, delimit(blocks)), shape)
    return reply.answer, usage_of(reply.spend)


async def say(model: Model, instructions: str, case: str) -> tuple[str, Usage]:
    reply = await model.complete((system(instructions), Message("user", case)))
    return reply.text, reply.usage if reply.usage.calls else replace(reply.usage, calls=1)


def usage_of(spend: Spend) -> Usage:
    """With its price, where the model is one that has a price."""
    read, written = spend.input_tokens, spend.output_tokens
    cost = price(spend.model, read, written) if read + written and not spend.model.startswith("scripted") else 0.0
    return Usage(spend.calls, read, written, cost)
