"""One call from its beginning to its end: context in, bytes through, exchange published.

What is ours may fail at any place, and the call goes on without it. Only the model server's failure is the caller's.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx
from pydantic import ValidationError
from starlette.types import Message, Receive, Scope, Send

from reflexio.app import Reflexio
from reflexio.errors import ReflexioError
from reflexio.gateway.answer import AnswerBytes, ModelAnswer, read_answer
from reflexio.gateway.headers import Headers, caller_headers, upstream_headers
from reflexio.gateway.prompt import ModelToolCall, NamedConversation, Prompt, Protocol
from reflexio.gateway.upstream import Upstream
from reflexio.interactions.publish import publish
from reflexio.models.interaction import PublishRequest
from reflexio.models.search import ContextItem, ContextRequest, ContextResponse
from reflexio.ports.storage import Store
from reflexio.retrieval.service import get_context

log = logging.getLogger("reflexio.gateway")

CONTEXT_SECONDS = 1.0
"""How long a call waits for its context; once more for what always holds, which needs no vector."""
LONGEST_QUERY, LONGEST_TEXT, LONGEST_OUTPUT = 10_000, 1_000_000, 10_000
LARGE_BODY = 256 * 1024
"""Bytes from which a body is read beside the event loop."""
SOURCE = "gateway"
ACCEPTED = range(200, 300)


@dataclass(frozen=True)
class GatewayCall:
    """A call as it arrived. `authorization` is what the model server gets, `reflexio_key` what it must never get."""

    method: str
    path: bytes
    query: bytes
    headers: Headers
    body: bytes
    authorization: str
    reflexio_key: str
    store: Store
    named: NamedConversation
    may_read: bool
    protocol: Protocol | None


class Relay:
    """Answers one call, as an ASGI application."""

    def __init__(self, parts: Reflexio, upstream: Upstream, call: GatewayCall) -> None:
        self._parts = parts
        self._upstream = upstream
        self._call = call
        self._items: Sequence[ContextItem] = ()
        self._status = 0
        self._content_type = ""
        self._seen: AnswerBytes | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = self._call
        prompt = await _read_prompt(call)
        conversation = self._conversation(prompt)
        body = await self._body(prompt, conversation) if prompt else call.body
        passing = asyncio.create_task(self._pass(body, send))
        gone = asyncio.create_task(_until_gone(receive))
        try:
            await asyncio.wait({passing, gone}, return_when=asyncio.FIRST_COMPLETED)
            if passing.done():
                passing.result()
        finally:
            for task in (passing, gone):
                task.cancel()
            await asyncio.gather(passing, gone, return_exceptions=True)
            if prompt and conversation.user_id and self._status in ACCEPTED:
                await self._publish(prompt, conversation)

    def _conversation(self, prompt: Prompt | None) -> NamedConversation:
        named = prompt.conversation(self._call.named) if prompt else self._call.named
        user_id = named.user_id or self._parts.settings.gateway_user
        return NamedConversation(user_id, named.session_id, named.agent_version)

    async def _body(self, prompt: Prompt, conversation: NamedConversation) -> bytes:
        """The body for the model server: as it came, unless there is a context for it."""
        if not (prompt.has_user and self._call.may_read):
            return self._call.body
        try:
            request = ContextRequest(
                query=prompt.question[:LONGEST_QUERY] or None,
                user_id=conversation.user_id or None,
                agent_version=conversation.agent_version or None,
            )
            found = await self._context(request)
            changed = prompt.with_context(found.context) if found.context else None
        except Exception as error:  # noqa: BLE001  the caller's call matters more than its context, whatever fails here
            log.warning("a call goes on without context: %s", _describe(error))
            return self._call.body
        if changed is None:
            return self._call.body
        self._items = found.items
        return changed

    async def _context(self, request: ContextRequest) -> ContextResponse:
        """The context; without what depends on the message when its vector is too long in coming."""
        try:
            return await self._context_in_time(request)
        except TimeoutError:
            log.warning("a call goes on with what always holds alone: its context was too slow")
            return await self._context_in_time(request.model_copy(update={"query": None}))

    async def _context_in_time(self, request: ContextRequest) -> ContextResponse:
        parts = self._parts
        async with asyncio.timeout(CONTEXT_SECONDS):
            return await get_context(self._call.store, parts.query_embedder, request, parts.clock.now())

    async def _pass(self, body: bytes, send: Send) -> None:
        call = self._call
        headers = upstream_headers(call.headers, call.authorization, call.reflexio_key)
        response = await self._upstream.send(call.method, call.path, call.query, headers, body)
        try:
            self._status = response.status_code
            self._content_type = response.headers.get("content-type", "")
            if call.protocol:
                self._seen = AnswerBytes(response.headers.get("content-encoding", "").strip().lower())
            await send(_head(response))
            async for chunk in response.aiter_raw():
                if self._seen:
                    self._seen.add(chunk)
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except httpx.TransportError as error:
            # The answer stays unfinished: the server closes the connection, and the caller sees that it was cut.
            log.warning("the model server broke off its answer: %s", type(error).__name__)
            return
        finally:
            await response.aclose()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _publish(self, prompt: Prompt, conversation: NamedConversation) -> None:
        """Publishes what was said, as far as it was seen. The caller has its answer already."""
        try:
            content = self._seen.content if self._seen else b""
            answer = await asyncio.to_thread(read_answer, prompt.protocol, self._content_type, content)
            request = _publish_request(prompt, conversation, answer, self._items)
            if request is not None:
                parts = self._parts
                version = parts.settings.agent_version
                await publish(parts.database, self._call.store, parts.clock, request, default_version=version)
        except Exception as error:  # noqa: BLE001  the caller has the answer; what is lost is one exchange
            log.warning("an exchange was not published: %s", _describe(error))


async def _until_gone(receive: Receive) -> None:
    """Returns when the caller has closed the connection. The body was read before."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _read_prompt(call: GatewayCall) -> Prompt | None:
    if call.protocol is None:
        return None
    try:
        if len(call.body) < LARGE_BODY:
            return Prompt.read(call.protocol, call.body)
        return await asyncio.to_thread(Prompt.read, call.protocol, call.body)
    except Exception as error:  # noqa: BLE001  whatever a body holds, the model server decides about it
        log.warning("a call goes on unread: %s", _describe(error))
        return None


def _head(response: httpx.Response) -> Message:
    headers = list(caller_headers(response.headers.raw))
    return {"type": "http.response.start", "status": response.status_code, "headers": headers}


def _describe(error: Exception) -> str:
    """Errors of ours in their own words; of others only the kind, because they may quote what was said."""
    return str(error) if isinstance(error, ReflexioError) else type(error).__name__


def _publish_request(
    prompt: Prompt, conversation: NamedConversation, answer: ModelAnswer, items: Sequence[ContextItem]
) -> PublishRequest | None:
    """The new turns; None when nothing was said. Tools that cannot be stored are left out."""
    turns: list[dict[str, Any]] = [
        {"role": "User", "content": _clean(entry.text)} for entry in prompt.unpublished() if entry.role == "user"
    ]
    results = [entry for entry in prompt.unpublished() if entry.role == "tool"]
    tools = [_tool(prompt.call_of(result), output=result.text) for result in results]
    tools += [_tool(call) for call in answer.calls]
    learnings = [{"kind": item.kind, "learning_id": item.id} for item in items]
    agent: dict[str, Any] = {"role": "Agent", "content": _clean(answer.text), "retrieved_learnings": learnings}
    fields: dict[str, Any] = {
        "user_id": conversation.user_id,
        "session_id": conversation.session_id or None,
        "agent_version": conversation.agent_version,
        "source": SOURCE,
    }
    for details in ({"tools_used": tools}, {}):
        said = [turn for turn in (*turns, agent | details) if turn["content"] or turn.get("tools_used")]
        if not said:
            return None
        with suppress(ValidationError):
            return PublishRequest.model_validate({**fields, "interaction_data_list": said})
    return None


def _tool(call: ModelToolCall | None, *, output: str | None = None) -> dict[str, Any]:
    data: dict[str, Any] = {"input": _arguments(call.arguments) if call else {}}
    if output is not None:
        data["output"] = _clean(output)[:LONGEST_OUTPUT]
    return {"tool_name": _clean(call.name if call else "") or "unknown", "tool_data": data}


def _arguments(text: str) -> Any:
    """The arguments of a call as the model wrote them; as a text when they are long or no JSON object."""
    if len(text) <= LONGEST_OUTPUT and "\\u" not in text:
        with suppress(ValueError, RecursionError):
            parsed = json.loads(_clean(text))
            if isinstance(parsed, dict):
                return parsed
    return _clean(text)[:LONGEST_OUTPUT]


def _clean(text: str) -> str:
    """The text as a database can hold it: without NUL characters and half surrogates."""
    return text[:LONGEST_TEXT].replace("\0", "").encode("utf-8", "replace").decode()
