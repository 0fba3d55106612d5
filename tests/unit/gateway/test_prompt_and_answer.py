"""Requests and answers of models, whatever they hold: read without an error, changed in one place only."""

import json
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexio.gateway.answer import MOST_BYTES, AnswerBytes, read_answer
from reflexio.gateway.headers import caller_headers, upstream_headers
from reflexio.gateway.prompt import NamedConversation, Prompt, Protocol

NAMES = st.sampled_from(
    [
        "role",
        "content",
        "type",
        "text",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "id",
        "index",
        "delta",
        "message",
        "choices",
        "output",
        "input",
        "messages",
        "call_id",
        "response",
        "item",
        "user",
        "metadata",
        "refusal",
    ]
)
WORDS = st.sampled_from(["user", "assistant", "tool", "message", "function_call", "input_text", "response.completed"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=25,
)
PROTOCOLS = st.sampled_from(Protocol)


def read(messages: Any, protocol: Protocol = Protocol.CHAT, **more: Any) -> Prompt:
    key = "messages" if protocol is Protocol.CHAT else "input"
    prompt = Prompt.read(protocol, json.dumps({key: messages, **more}).encode())
    assert prompt is not None
    return prompt


@given(PROTOCOLS, st.dictionaries(NAMES, ANYTHING, max_size=6))
def test_no_request_is_too_strange_to_be_read(protocol: Protocol, document: dict[str, Any]) -> None:
    prompt = Prompt.read(protocol, json.dumps(document).encode())
    assert prompt is not None
    prompt.unpublished()
    assert isinstance(prompt.conversation(NamedConversation()).user_id, str)
    changed = prompt.with_context("CONTEXT")
    if changed is not None:
        assert changed.count(b"CONTEXT") == 1
        assert list(json.loads(changed)) == list(document)


@given(PROTOCOLS, ANYTHING, st.booleans())
def test_no_answer_is_too_strange_to_be_read(protocol: Protocol, document: Any, is_stream: bool) -> None:
    text = json.dumps(document)
    body = f"data: {text}\r\n\r\ndata: {text}\n\ndata:" if is_stream else text
    read_answer(protocol, "text/event-stream" if is_stream else "application/json", body.encode())


@given(PROTOCOLS, st.binary(max_size=200))
def test_bytes_that_are_no_text_are_no_answer(protocol: Protocol, body: bytes) -> None:
    read_answer(protocol, "text/event-stream", body)
    read_answer(protocol, "application/json", body)


@pytest.mark.parametrize(
    ("messages", "unpublished"),
    [
        ("user", ["user"]),
        ("system user", ["system", "user"]),
        ("user assistant user", ["user"]),
        ("user assistant user user", ["user", "user"]),
        ("user calls tool", ["tool"]),
        ("user calls tool calls tool tool", ["tool", "tool"]),
        ("user assistant user assistant", ["user"]),  # the model continues its own beginning
        ("assistant", []),
        ("", []),
    ],
)
def test_what_was_said_since_the_last_answer(messages: str, unpublished: list[str]) -> None:
    call = {"id": "1", "function": {"name": "f", "arguments": "{}"}}
    document = [
        {"role": "assistant", "tool_calls": [call]} if word == "calls" else {"role": word, "content": "x"}
        for word in messages.split()
    ]
    assert [entry.role for entry in read(document).unpublished()] == unpublished


def test_only_the_last_message_of_a_user_changes() -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}, {"role": "tool", "content": "c"}]
    changed = json.loads(read(messages, model="m").with_context("C") or b"")
    assert changed == {"messages": [messages[0], {"role": "user", "content": "C\n\nb"}, messages[2]], "model": "m"}
    assert read([{"role": "system", "content": "a"}]).with_context("C") is None


@pytest.mark.parametrize("content", [None, 7, {"text": "a"}, True])
def test_a_content_that_is_none_is_left_to_the_model_server(content: Any) -> None:
    for protocol in Protocol:
        assert read([{"role": "user", "content": content}], protocol).with_context("C") is None


def test_events_in_several_lines_and_with_other_line_ends_are_read() -> None:
    body = b': hello\r\nevent: x\r\ndata: {"choices": [{"index": 0,\r\ndata: "delta": {"content": "Yes"}}]}\r\n\r\n'
    assert read_answer(Protocol.CHAT, "Text/Event-Stream; charset=utf-8", body).text == "Yes"


def test_an_answer_without_end_is_kept_to_a_bound_also_when_it_unpacks_to_much() -> None:
    bomb = zlib.compress(b"x" * (MOST_BYTES * 4))
    assert len(bomb) < MOST_BYTES / 100
    packed = AnswerBytes("deflate")
    plain = AnswerBytes("")
    for _ in range(3):
        packed.add(bomb)
        plain.add(b"x" * MOST_BYTES)
    assert len(packed.content) == len(plain.content) == MOST_BYTES


def test_what_cannot_be_unpacked_is_nothing() -> None:
    for encoding in ("gzip", "br", "gzip, br"):
        answer = AnswerBytes(encoding)
        answer.add(b"not compressed")
        assert answer.content == b""


def test_headers_of_this_hop_do_not_pass() -> None:
    given = [
        (b"connection", b"close, X-Mine"),
        (b"x-mine", b"1"),
        (b"x-forwarded-for", b"10.0.0.7"),
        (b"cookie", b"a=b"),
        (b"authorization", b"Bearer other"),
        (b"openai-beta", b"assistants=v2"),
        (b"x-anything", b"Bearer secret-of-reflexio"),
    ]
    passed = dict(upstream_headers(given, "Bearer k", "secret-of-reflexio"))
    assert passed == {
        b"openai-beta": b"assistants=v2",
        b"accept-encoding": b"identity",
        b"authorization": b"Bearer k",
    }
    answered = [(b"Content-Length", b"3"), (b"Transfer-Encoding", b"chunked"), (b"Set-Cookie", b"a"), (b"X-A", b"1")]
    assert dict(caller_headers(answered)) == {b"content-length": b"3", b"x-a": b"1"}
