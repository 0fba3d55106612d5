"""ReAct: ask the model, run the tools it wants, and ask again until it answers."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from reflexio.agents.architecture.base import AgentSession, Dependencies, Event, EventKind, budget_exceeded
from reflexio.agents.calling import closing
from reflexio.agents.meter import OutOfTime
from reflexio.agents.model import Message, ModelReply, ToolCall, ToolSpec, system
from reflexio.agents.tools import answered

if TYPE_CHECKING:
    from reflexio.agents.agent import Agent


class ReAct:
    """Asks the model, runs the tools it wants, and asks again until it answers. The default.

    At most `max_turns` model calls for one prompt; the agent's limit unless given.
    """

    name = "react"
    reads_memory = True

    def __init__(self, *, max_turns: int | None = None) -> None:
        if max_turns is not None and max_turns < 1:
            raise ValueError("max_turns must be >= 1")
        self._max_turns = max_turns

    def declared_workers(self) -> "dict[str, Agent]":
        return {}

    async def run(self, session: AgentSession, deps: Dependencies, prompt: str) -> AsyncIterator[Event]:
        if not session.messages:
            session.messages = await _opening(session, deps, prompt)
        # Turns carry over from one attempt to the next; the limit is for this one.
        last = session.turns + (deps.max_turns if self._max_turns is None else self._max_turns)
        try:
            while session.turns < last:
                if limit := deps.budget.spent():
                    yield budget_exceeded(session, deps, limit)
                    return
                if deps.streaming:
                    reply = ModelReply("")
                    async with aclosing(_pieces(session, deps)) as pieces:
                        async for piece in pieces:
                            if isinstance(piece, ModelReply):
                                reply = piece
                            else:
                                yield Event(EventKind.MODEL_CHUNK, session.id, {"chunk": piece})
                else:
                    reply = await deps.budget.in_time(deps.model.complete(session.messages, tools=_specs(deps)))
                _take(reply, session, deps)
                if not reply.tool_calls:
                    session.output = reply.text
                    return
                for call in reply.tool_calls:
                    yield Event(EventKind.TOOL_CALL, session.id, {"call": asdict(call)})
                for event in await deps.budget.in_time(_answer(reply.tool_calls, session, deps)):
                    yield event
            session.interrupt("max_turns_exceeded")
        except OutOfTime:
            yield budget_exceeded(session, deps, "seconds")


def _specs(deps: Dependencies) -> list[ToolSpec]:
    return [tool.spec for tool in deps.tools.values()]


async def _pieces(session: AgentSession, deps: Dependencies) -> AsyncGenerator[str | ModelReply, None]:
    async with closing(deps.model.stream(session.messages, tools=_specs(deps))) as pieces:
        while (piece := await deps.budget.in_time(anext(pieces, None))) is not None:
            yield piece


async def _opening(session: AgentSession, deps: Dependencies, prompt: str) -> list[Message]:
    blocks = await deps.memory.working(user_id=deps.context.user_id)
    messages = [system(session.instructions)] if session.instructions else []
    if blocks:
        messages.append(Message("system", "\n\n".join([block.format() for block in blocks])))
    messages.append(Message("user", prompt))
    return messages


def _take(reply: ModelReply, session: AgentSession, deps: Dependencies) -> None:
    usage = reply.usage if reply.usage.calls else replace(reply.usage, calls=1)
    session.book(usage)
    deps.budget.spend(usage)
    session.messages.append(Message("assistant", reply.text, reply.tool_calls, raw=reply.raw))


async def _answer(calls: Sequence[ToolCall], session: AgentSession, deps: Dependencies) -> list[Event]:
    """All tools of one turn run side by side."""
    answers = await asyncio.gather(*(answered(call, deps.tools) for call in calls))
    events = []
    for call, (text, worked) in zip(calls, answers, strict=True):
        session.messages.append(Message("tool", text, tool_call_id=call.id, tool_name=call.name))
        told = {"call_id": call.id, "name": call.name, "content": text, "ok": worked}
        events.append(Event(EventKind.TOOL_RESULT, session.id, {"result": told}))
    return events
