"""The pass-through on a real server, in front of a model server that says exactly what each test wants."""

import gzip
import json
import socket
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from openai import OpenAI

from reflexio.models.access import KeyScope
from reflexio.server.process import running_server
from tests.builders import eventually, name, new_key, problem
from tests.conftest import Org, Running, StartServer
from tests.model_server import (
    STREAM_END,
    STREAM_HEAD,
    HangUp,
    ModelServer,
    chunk,
    deltas,
    events,
    json_answer,
    model_server,
    said,
)

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
OPERATORS_MODEL_KEY, CALLERS_MODEL_KEY = "sk-operator", "sk-caller"


@pytest.fixture(scope="module")
def one_model() -> Iterator[ModelServer]:
    with model_server() as model:
        yield model


@pytest.fixture
def model(one_model: ModelServer) -> ModelServer:
    one_model.reset()
    return one_model


@pytest.fixture(scope="module")
def shared(one_model: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server for many, with a model key of its operator."""
    folder = tmp_path_factory.mktemp("shared")
    new_key(folder, "first")
    settings = {"REFLEXIO_GATEWAY_URL": one_model.url, "REFLEXIO_GATEWAY_KEY": OPERATORS_MODEL_KEY}
    with running_server(folder, settings) as url:
        yield Running(url, folder)


@pytest.fixture(scope="module")
def home(one_model: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of one person, without any key."""
    folder = tmp_path_factory.mktemp("home")
    with running_server(folder, {"REFLEXIO_GATEWAY_URL": f"{one_model.url}/", "REFLEXIO_GATEWAY_TIMEOUT": "2"}) as url:
        yield Running(url, folder)


@pytest.fixture
def ours(shared: Running) -> Org:
    org = name("org")
    return Org(org, shared.url, new_key(shared.folder, org))


def ask(text: Any = "Which dish do you recommend?", **more: Any) -> dict[str, Any]:
    return {
        "model": "m",
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": text}],
        **more,
    }


def is_vegan(org: Org, *, user: str = "") -> str:
    user = user or name()
    with org.client() as client:
        client.add_user_profile([{"user_id": user, "content": "Is vegan", "scope": "always"}])
    return user


def turns_of(org: Org, user: str, count: int = 2) -> list[Any]:
    """The turns of a user, oldest first, as soon as there are so many."""
    with org.client() as client:
        eventually(lambda: len(client.get_interactions(user).interactions) >= count)
        return client.get_interactions(user).interactions[::-1]


# What reaches the model, and what comes back


def test_the_context_of_the_user_is_in_front_of_the_last_message_and_the_exchange_is_published(
    model: ModelServer, ours: Org
) -> None:
    user = is_vegan(ours)
    body = b'{"id" : "c-1", "choices":[{"index":0,"message":{"role":"assistant","content":"Try the d\\u0061l."}}]}  \n'
    model.answer = lambda call: [json_answer(body, openai_version="2020-10-01", x_request_id="up-1", set_cookie="a=b")]
    history = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]
    sent = {**ask(user=user, temperature=0.5), "messages": [*history, *ask()["messages"]]}
    with ours.http() as http:
        answer = http.post(CHAT, json=sent)
    assert answer.content == body
    assert answer.headers["openai-version"] == "2020-10-01"
    assert answer.headers["x-upstream-request-id"] == "up-1"
    assert "set-cookie" not in answer.headers
    (call,) = model.calls
    assert call.path == CHAT
    *before, last = call.json["messages"]
    assert before == sent["messages"][:-1]
    assert last["role"] == "user"
    assert last["content"].endswith("</learned>\n\nWhich dish do you recommend?")
    assert "Is vegan" in last["content"]
    assert {key: value for key, value in call.json.items() if key != "messages"} == {
        key: value for key, value in sent.items() if key != "messages"
    }
    question, reply = turns_of(ours, user)
    assert (question.role, question.content) == ("User", "Which dish do you recommend?")
    assert (reply.role, reply.content) == ("Agent", "Try the dal.")
    assert [row.kind for row in reply.retrieved_learnings] == ["profile"]


def test_responses_are_understood_in_every_form_of_input(model: ModelServer, ours: Org) -> None:
    user = is_vegan(ours)
    output = [
        {"type": "reasoning", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Try the dal."}]},
    ]
    body = json.dumps({"id": "r-1", "output": output}).encode()
    model.answer = lambda call: [json_answer(body)]
    message = {"role": "user", "content": [{"type": "input_text", "text": "A dish?"}]}
    image = {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]}
    with ours.http() as http:
        for asked in ("A dish?", [message], [{"role": "assistant", "content": "Hm."}, image]):
            metadata = {"user_id": user, "agent_version": "cook-1", "session_id": "supper"}
            answer = http.post(RESPONSES, json={"model": "m", "input": asked, "metadata": metadata})
            assert answer.content == body
    first, second, third = (call.json["input"] for call in model.calls)
    assert first.endswith("</learned>\n\nA dish?")
    assert "Is vegan" in second[0]["content"][0]["text"]
    assert second[0]["content"][1:] == message["content"]
    assert third[0] == {"role": "assistant", "content": "Hm."}
    assert "Is vegan" in third[1]["content"][0]["text"], "what always holds needs no question"
    assert third[1]["content"][1:] == image["content"]
    said_by_user = [turn.content for turn in turns_of(ours, user, 6) if turn.role == "User"]
    assert said_by_user == ["A dish?", "A dish?", "[image]"]
    with ours.client() as client:
        (session,) = client.get_requests(user_id=user).sessions
        assert session.session_id == "supper"
        assert {entry.request.agent_version for entry in session.requests} == {"cook-1"}


def test_a_stream_passes_piece_by_piece_and_is_published_at_its_end(model: ModelServer, ours: Org) -> None:
    user, more = is_vegan(ours), threading.Event()
    first, rest = events(*deltas("Try ", "the "), done=False), events(*deltas("dal."))
    model.answer = lambda call: [STREAM_HEAD, chunk(first), more, chunk(rest), STREAM_END]
    with ours.http() as http, http.stream("POST", CHAT, json=ask(user=user, stream=True)) as answer:
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        pieces = answer.iter_raw()
        seen = next(pieces)
        assert seen == first, "the first words are here before the model has finished"
        more.set()
        seen += b"".join(pieces)
    assert seen == first + rest
    assert [turn.content for turn in turns_of(ours, user)] == ["Which dish do you recommend?", "Try the dal."]


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_stream_of_responses_is_published_also_when_it_breaks_off(
    model: ModelServer, ours: Org, is_whole: bool
) -> None:
    user = name()
    words = [{"type": "response.output_text.delta", "delta": text} for text in ("Try ", "the dal.")]
    message = {"type": "message", "content": [{"type": "output_text", "text": "Try the dal."}]}
    end = {"type": "response.completed", "response": {"output": [message]}}

    def answer(call: Any) -> Iterator[bytes]:
        yield STREAM_HEAD + chunk(events(*words, done=False))
        if not is_whole:
            raise HangUp
        yield chunk(events(end, done=False)) + STREAM_END

    model.answer = answer
    sent = {"model": "m", "input": "A dish?", "user": user, "stream": True}
    with ours.http() as http, http.stream("POST", RESPONSES, json=sent) as stream:
        if is_whole:
            stream.read()
        else:
            with pytest.raises(httpx.RemoteProtocolError):
                stream.read()
    assert [turn.content for turn in turns_of(ours, user)] == ["A dish?", "Try the dal."]


def test_when_the_caller_goes_the_model_is_told_and_what_was_seen_is_published(model: ModelServer, ours: Org) -> None:
    user = name()

    def answer(call: Any) -> Iterator[bytes]:
        yield STREAM_HEAD + chunk(events(*deltas("Try the "), done=False))
        while not model.has_lost_a_caller.wait(0.01):
            yield chunk(b": ping\n\n")

    model.answer = answer
    with ours.http() as http, http.stream("POST", CHAT, json=ask(user=user, stream=True)) as stream:
        next(stream.iter_raw())
    assert model.has_lost_a_caller.wait(20)
    assert [turn.content for turn in turns_of(ours, user)] == ["Which dish do you recommend?", "Try the "]


def test_a_compressed_answer_passes_as_it_is_and_is_published(model: ModelServer, ours: Org) -> None:
    user, body = name(), gzip.compress(json.dumps(said("Try the dal.")).encode())
    model.answer = lambda call: [json_answer(body, content_encoding="gzip")]
    headers = {"Accept-Encoding": "br, zstd;q=0.9, gzip;q=0.5"}
    with ours.http() as http, http.stream("POST", CHAT, json=ask(user=user), headers=headers) as answer:
        assert b"".join(answer.iter_raw()) == body
        assert answer.headers["content-encoding"] == "gzip"
    assert model.calls[0].headers["accept-encoding"] == "gzip"
    assert turns_of(ours, user)[1].content == "Try the dal."


def test_a_tool_loop_is_published_without_repetition(model: ModelServer, ours: Org) -> None:
    user = is_vegan(ours)
    calls = [
        {"id": f"t{number}", "type": "function", "function": {"name": "menu", "arguments": json.dumps({"day": number})}}
        for number in (1, 2)
    ]
    fragments = [
        {"index": 0, "id": "t1", "function": {"name": "menu", "arguments": '{"da'}},
        {"index": 0, "function": {"arguments": 'y": 1}'}},
        {"index": 1, "id": "t2", "function": {"name": "menu", "arguments": '{"day": 2}'}},
    ]
    stream = [{"choices": [{"index": 0, "delta": {"tool_calls": [fragment]}}]} for fragment in fragments]
    model.answer = lambda call: [STREAM_HEAD + chunk(events(*stream)) + STREAM_END]
    messages = ask()["messages"]
    with ours.http() as http:
        http.post(CHAT, json=ask(user=user, stream=True))
        model.answer = lambda call: [json_answer(said("Dal on Monday."))]
        results = [{"role": "tool", "tool_call_id": call["id"], "content": f"dal {call['id']}"} for call in calls]
        loop = [*messages, {"role": "assistant", "content": None, "tool_calls": calls}, *results]
        http.post(CHAT, json={"model": "m", "user": user, "messages": loop})
    first, second = (call.json["messages"][1] for call in model.calls)
    assert first == second, "the same context in the same place keeps the model's cache valid"
    question, asked_for, reply = turns_of(ours, user, 3)
    assert question.content == "Which dish do you recommend?"
    assert [(tool.tool_name, tool.tool_data) for tool in asked_for.tools_used] == [
        ("menu", {"input": {"day": 1}}),
        ("menu", {"input": {"day": 2}}),
    ]
    assert reply.content == "Dal on Monday."
    assert [tool.tool_data for tool in reply.tools_used] == [
        {"input": {"day": 1}, "output": "dal t1"},
        {"input": {"day": 2}, "output": "dal t2"},
    ]


def test_the_tools_of_responses_are_published_too(model: ModelServer, ours: Org) -> None:
    user = name()
    call = {"type": "function_call", "call_id": "t1", "name": "menu", "arguments": '{"day": 1}'}
    output = {"type": "function_call_output", "call_id": "t1", "output": "dal"}
    message = {"type": "message", "content": [{"type": "output_text", "text": "Dal."}]}
    model.answer = lambda _: [json_answer({"output": [message]})]
    with ours.http() as http:
        sent = {"input": [{"role": "user", "content": "What is there?"}, call, output], "user": user}
        http.post(RESPONSES, json=sent)
    (reply,) = turns_of(ours, user, 1)
    assert (reply.content, reply.tools_used[0].tool_data) == ("Dal.", {"input": {"day": 1}, "output": "dal"})


def test_of_several_choices_the_first_is_published(model: ModelServer, ours: Org) -> None:
    user = name()
    choices = [
        {"index": index, "message": {"role": "assistant", "content": text}} for index, text in ((1, "B"), (0, "A"))
    ]
    model.answer = lambda call: [json_answer({"choices": choices})]
    with ours.http() as http:
        assert len(http.post(CHAT, json=ask(user=user, n=2)).json()["choices"]) == 2
    assert turns_of(ours, user)[1].content == "A"


def test_parts_of_a_message_keep_their_order_and_get_the_context_in_front(model: ModelServer, ours: Org) -> None:
    user = is_vegan(ours)
    parts = [
        {"type": "text", "text": "What is this dish?"},
        {"type": "image_url", "image_url": {"url": "https://example.org/dish.png"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    ]
    with ours.http() as http:
        http.post(CHAT, json=ask(parts, user=user))
    first, *rest = model.calls[0].json["messages"][1]["content"]
    assert first["type"] == "text"
    assert "Is vegan" in first["text"]
    assert rest == parts
    assert turns_of(ours, user)[0].content == "What is this dish?\n[image]\n[audio]"


# For whom


def test_without_a_user_only_what_holds_for_everybody_reaches_the_model(model: ModelServer, ours: Org) -> None:
    is_vegan(ours, user="ann")
    with ours.client() as client:
        rule = {"content": "Name the allergens", "playbook_status": "approved", "scope": "always"}
        client.add_agent_playbooks([rule])
        before = len(client.get_all_interactions().interactions)
    with ours.http() as http:
        http.post(CHAT, json=ask("What is there for ann, who is vegan?"))
    sent = model.calls[0].body.decode()
    assert "Name the allergens" in sent
    assert "Is vegan" not in sent
    with ours.client() as client:
        assert len(client.get_all_interactions().interactions) == before


def test_no_organisation_gets_the_context_of_another(model: ModelServer, ours: Org, shared: Running) -> None:
    user = is_vegan(ours)
    theirs = Org(name("org"), shared.url, new_key(shared.folder, name("org")))
    with theirs.http() as http:
        sent = ask(user=user)
        http.post(CHAT, json=sent)
    assert model.calls[0].json == sent
    with ours.client() as client:
        assert client.get_interactions(user).interactions == []


@pytest.mark.parametrize(
    ("headers", "body", "user"),
    [
        ({"X-Reflexio-User": "by-header"}, {"user": "by-user", "metadata": {"user_id": "by-metadata"}}, "by-header"),
        ({"X-Reflexio-User": "zo%C3%AB"}, {}, "zoë"),
        ({}, {"user": "by-user", "metadata": {"user_id": "by-metadata"}}, "by-metadata"),
        ({}, {"user": "by-user", "safety_identifier": "by-safety"}, "by-user"),
        ({}, {"safety_identifier": "by-safety"}, "by-safety"),
        ({"X-Reflexio-User": "x" * 300}, {"user": "by-user"}, "by-user"),
        ({}, {"user": 7, "metadata": ["user_id"], "safety_identifier": "by-safety"}, "by-safety"),
    ],
)
def test_who_says_the_user(
    model: ModelServer, ours: Org, headers: dict[str, str], body: dict[str, Any], user: str
) -> None:
    with ours.http() as http:
        assert http.post(CHAT, json=ask(**body), headers=headers).is_success
    assert [turn.content for turn in turns_of(ours, user)] == ["Which dish do you recommend?", "Yes."]
    assert not any(header.startswith("x-reflexio") for header in model.calls[0].headers)


def test_the_operator_can_name_the_user_of_calls_without_one(model: ModelServer, start_server: StartServer) -> None:
    server = start_server(REFLEXIO_GATEWAY_URL=model.url, REFLEXIO_GATEWAY_USER="me")
    org = Org("default", server.url, "any")
    is_vegan(org, user="me")
    httpx.post(server.url + CHAT, json=ask())
    assert b"Is vegan" in model.calls[0].body
    assert len(turns_of(org, "me")) == 2


# Keys


def test_the_operators_model_key_replaces_the_key_of_reflexio(model: ModelServer, ours: Org) -> None:
    with ours.http() as http:
        stray = {"api-key": ours.token, "X-Api-Key": ours.token, "Cookie": f"k={ours.token}", "OpenAI-Project": "p"}
        http.post(f"{CHAT}?api-version=1", json=ask(), headers=stray)
    (call,) = model.calls
    assert call.headers["authorization"] == f"Bearer {OPERATORS_MODEL_KEY}"
    assert call.headers["openai-project"] == "p"
    assert call.path == f"{CHAT}?api-version=1"
    assert ours.token not in str(call)


def test_a_caller_may_bring_a_model_key_and_show_the_key_of_reflexio_beside_it(model: ModelServer, ours: Org) -> None:
    headers = {"Authorization": f"Bearer {CALLERS_MODEL_KEY}", "X-Reflexio-Key": ours.token}
    user = name()
    assert httpx.post(ours.url + CHAT, json=ask(user=user), headers=headers).is_success
    assert httpx.get(f"{ours.url}/v1/files", headers=headers).is_success
    assert [call.headers["authorization"] for call in model.calls] == [f"Bearer {CALLERS_MODEL_KEY}"] * 2
    assert ours.token not in str(model.calls)
    assert len(turns_of(ours, user)) == 2


def test_a_key_of_reflexio_in_the_place_of_a_model_key_is_not_passed_on(model: ModelServer, ours: Org) -> None:
    for other in (ours.token, "rfx_of-another-server"):
        headers = {"Authorization": f"Bearer {other}", "X-Reflexio-Key": ours.token}
        assert httpx.post(ours.url + CHAT, json=ask(), headers=headers).is_success
    assert {call.headers["authorization"] for call in model.calls} == {f"Bearer {OPERATORS_MODEL_KEY}"}
    with ours.http() as http:
        assert "belongs into a header" in problem(http.post(f"{CHAT}?key={ours.token}", json=ask()), 422)


def test_without_a_key_nobody_spends_the_operators_money(model: ModelServer, ours: Org, shared: Running) -> None:
    refused = [{}, {"Authorization": "Bearer sk-caller"}, {"X-Reflexio-Key": "rfx_wrong", "Authorization": "Bearer x"}]
    for headers in refused:
        problem(httpx.post(ours.url + CHAT, json=ask(), headers=headers), 401)
    reading = new_key(shared.folder, ours.id, scopes=frozenset({KeyScope.READ, KeyScope.REVIEW, KeyScope.ADMIN}))
    answer = httpx.post(ours.url + CHAT, json=ask(), headers={"Authorization": f"Bearer {reading}"})
    assert "'publish'" in problem(answer, 403)
    assert not model.calls


def test_a_key_that_may_not_read_gets_no_context(model: ModelServer, ours: Org, shared: Running) -> None:
    user = is_vegan(ours)
    token = new_key(shared.folder, ours.id, scopes=frozenset({KeyScope.PUBLISH}))
    assert httpx.post(ours.url + CHAT, json=ask(user=user), headers={"Authorization": f"Bearer {token}"}).is_success
    assert b"vegan" not in model.calls[0].body
    assert len(turns_of(ours, user)) == 2


@pytest.mark.parametrize(
    "call", ["GET /files", "GET /chat/completions", "DELETE /files/f-1", "POST /batches", "GET /responses/r"]
)
def test_the_operators_key_is_not_lent_for_what_others_left_with_the_provider(
    model: ModelServer, ours: Org, call: str
) -> None:
    method, _, path = call.partition(" ")
    with ours.http() as http:
        assert "X-Reflexio-Key" in problem(http.request(method, f"/v1{path}"), 403)
    assert not model.calls


@pytest.mark.parametrize(
    "path", ["../admin", "%2e%2e/admin", "chat/../../admin", "x%2f..%2f..%2fadmin", "%252e%252e/a", "a%00"]
)
def test_no_path_leads_out_of_the_operators_address(model: ModelServer, home: Running, path: str) -> None:
    address = httpx.URL(home.url)
    request = f"GET /v1/{path} HTTP/1.1\r\nHost: {address.host}:{address.port}\r\nConnection: close\r\n\r\n"
    with socket.create_connection((address.host, address.port or 80), timeout=20) as line:
        line.sendall(request.encode())
        assert line.recv(65_536).startswith((b"HTTP/1.1 404", b"HTTP/1.1 400"))
    assert not model.calls


def test_at_home_only_the_base_url_changes(model: ModelServer, home: Running) -> None:
    user = name()
    with OpenAI(base_url=f"{home.url}/v1", api_key=CALLERS_MODEL_KEY, max_retries=0) as client:
        plain = client.chat.completions.create(model="m", messages=ask()["messages"], user=user)
        assert plain.choices[0].message.content == "Yes."
        model.answer = lambda call: [STREAM_HEAD + chunk(events(*deltas("Try ", "dal."))) + STREAM_END]
        stream = client.chat.completions.create(model="m", messages=ask()["messages"], user=user, stream=True)
        assert "".join(part.choices[0].delta.content or "" for part in stream) == "Try dal."
        model.answer = lambda call: [json_answer({"data": [{"id": "m", "object": "model"}], "object": "list"})]
        assert [entry.id for entry in client.models.list()] == ["m"]
    assert {call.headers["authorization"] for call in model.calls} == {f"Bearer {CALLERS_MODEL_KEY}"}
    assert [turn.content for turn in turns_of(Org("default", home.url, "any"), user, 4)][1::2] == ["Yes.", "Try dal."]


# Whatever goes wrong


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_an_error_of_the_model_server_passes_unchanged_and_nothing_is_published(
    model: ModelServer, ours: Org, status: int
) -> None:
    user, body = name(), b'{"error": {"message": "no", "type": "x", "code": null}}'
    model.answer = lambda call: [json_answer(body, status, retry_after="7", x_ratelimit_remaining_tokens="0")]
    with ours.http() as http:
        answer = http.post(CHAT, json=ask(user=user))
        assert (answer.status_code, answer.content) == (status, body)
        assert answer.headers["retry-after"] == "7"
        assert answer.headers["x-ratelimit-remaining-tokens"] == "0"
        assert http.post("/api/get_interactions", json={"user_id": user}).json()["interactions"] == []


BODIES = [
    b"",
    b"not json",
    b"[]",
    b'{"messages": 7}',
    b'{"messages": [], "user": "ann"}',
    b'{"messages": [7, null, {"role": 7, "content": {"a": 1}}, {"role": "user", "content": [[1], {"type": 7}]}]}',
    b'{"messages": [{"role": "user", "content": null}], "user": "ann"}',
    b'{"messages": [{"role": "user", "content": "hi"}], "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"messages": [{"role": "user", "content": "hi"}], "seed": ' + b"9" * 5000 + b"}",
    b'{"messages": [{"role": "user", "content": "hi"}], "top_p": 1e999, "user": "has-context"}',
    b'\xff\xfe{"messages"',
    b'{"messages": [{"role": "user", "content": "hi"}], "user": "has-context", "x": [' + b"0," * 250_000 + b"0]}",
]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body[:40].decode(errors="replace"))
@pytest.mark.parametrize("path", [CHAT, RESPONSES])
def test_a_body_that_is_not_understood_passes_byte_for_byte(
    model: ModelServer, ours: Org, path: str, body: bytes
) -> None:
    is_vegan(ours, user="has-context")
    with ours.http() as http:
        answer = http.post(path, content=body, headers={"Content-Type": "application/json"})
    assert answer.is_success, answer.text
    assert model.calls[0].body == body


def test_without_a_context_the_body_passes_byte_for_byte(model: ModelServer, ours: Org) -> None:
    body = b'{ "messages":[{"content":"H\\u00f6 \\ud83d\\ude00", "role":"user"}],\n"temperature":1.0, "user":"nobody" }'
    with ours.http() as http:
        http.post(CHAT, content=body, headers={"Content-Type": "application/json"})
        upload: dict[str, Any] = {"file": ("x.jsonl", b"\x00\xff{}"), "purpose": (None, "batch")}
        headers = {"Authorization": f"Bearer {CALLERS_MODEL_KEY}", "X-Reflexio-Key": ours.token}
        http.post("/v1/files", files=upload, headers=headers)
    assert model.calls[0].body == body
    assert b"\x00\xff{}" in model.calls[1].body
    assert model.calls[1].headers["content-type"].startswith("multipart/form-data; boundary=")


@pytest.mark.parametrize(
    "answer", [b"", b"[]", b'{"choices": 7}', b'{"choices": [{"index": 0, "message": 7}]}', b"\xff"]
)
def test_an_answer_that_is_not_understood_passes_and_the_question_is_published(
    model: ModelServer, ours: Org, answer: bytes
) -> None:
    user = name()
    model.answer = lambda call: [json_answer(answer)]
    with ours.http() as http:
        assert http.post(CHAT, json=ask(user=user)).content == answer
    assert [turn.content for turn in turns_of(ours, user, 1)] == ["Which dish do you recommend?"]


def test_without_a_model_server_the_error_says_so(start_server: StartServer) -> None:
    away = start_server(REFLEXIO_GATEWAY_URL="http://127.0.0.1:9/v1")
    assert "REFLEXIO_GATEWAY_URL" in problem(httpx.post(away.url + CHAT, json=ask()), 503)


def test_without_the_setting_there_is_no_pass_through(org: Org) -> None:
    with org.http() as http:
        assert "REFLEXIO_GATEWAY_URL" in problem(http.post(CHAT, json=ask()), 404)


def test_a_model_server_that_hangs_is_given_up(model: ModelServer, home: Running) -> None:
    never = threading.Event()
    model.answer = lambda call: [never]
    assert "silent for 2 s" in problem(httpx.post(home.url + CHAT, json=ask(), timeout=20), 504)
    model.answer = lambda call: [STREAM_HEAD, chunk(events(*deltas("Try "), done=False)), never]
    with (
        httpx.stream("POST", home.url + CHAT, json=ask(), timeout=20) as answer,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        answer.read()
    never.set()


def test_the_call_goes_through_when_our_own_database_fails(
    model: ModelServer, start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(REFLEXIO_GATEWAY_URL=model.url)
    with sqlite3.connect(tmp_path / "reflexio.db") as database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            if table.startswith(("learnings", "interactions", "requests")):
                database.execute(f"ALTER TABLE {table} RENAME TO gone_{table}")
    sent = ask(user="ann")
    for stream in (False, True):
        if stream:
            model.answer = lambda call: [STREAM_HEAD + chunk(events(*deltas("Yes."))) + STREAM_END]
        answer = httpx.post(server.url + CHAT, json={**sent, "stream": stream}, timeout=30)
        assert answer.is_success
        assert b"Yes." in answer.content
    assert [call.json["messages"] for call in model.calls] == [sent["messages"]] * 2


def test_an_embedder_that_hangs_does_not_hold_the_call(model: ModelServer, start_server: StartServer) -> None:
    hanging = threading.Event()

    def answer(call: Any) -> list[Any]:
        if call.path.endswith("/embeddings"):
            return [hanging]
        return [json_answer(said("Yes."))]

    model.answer = answer
    server = start_server(
        REFLEXIO_GATEWAY_URL=model.url, REFLEXIO_EMBEDDER="openai:e@8", OPENAI_API_KEY="k", OPENAI_BASE_URL=model.url
    )
    is_vegan(Org("default", server.url, "any"), user="ann")
    assert httpx.post(server.url + CHAT, json=ask(user="ann"), timeout=10).is_success
    assert b"Is vegan" in model.calls[-1].body, "what always holds needs no vector"
    hanging.set()


def test_limits_hold(model: ModelServer, start_server: StartServer) -> None:
    server = start_server(
        REFLEXIO_GATEWAY_URL=model.url, REFLEXIO_RATE_LIMITS="completions=1/minute", REFLEXIO_MAX_BODY_BYTES="2000"
    )
    assert httpx.post(server.url + CHAT, json=ask()).is_success
    problem(httpx.post(server.url + CHAT, json=ask()), 429)
    problem(httpx.post(server.url + RESPONSES, json={"input": "x" * 3000}), 413)
    foreign = {"Origin": "https://attacker.example"}
    problem(httpx.post(server.url + RESPONSES, json={"input": "x"}, headers=foreign), 403)


def test_no_log_line_holds_a_key_or_a_word_of_the_conversation(
    model: ModelServer, start_server: StartServer, capfd: pytest.CaptureFixture[str]
) -> None:
    server = start_server(
        REFLEXIO_GATEWAY_URL=model.url, REFLEXIO_GATEWAY_KEY="sk-operator-1", REFLEXIO_LOG_LEVEL="debug"
    )
    httpx.post(server.url + CHAT, json=ask("zanzibar"), headers={"Authorization": "Bearer sk-caller-1"})

    def broken(call: Any) -> Iterator[bytes]:
        yield STREAM_HEAD
        raise HangUp

    model.answer = broken
    with httpx.stream("POST", server.url + CHAT, json=ask("zanzibar")) as answer, pytest.raises(httpx.TransportError):
        answer.read()
    server.stop()
    logged = "".join(capfd.readouterr())
    assert "broke off" in logged
    assert not any(secret in logged for secret in ("sk-operator-1", "sk-caller-1", "zanzibar", "Traceback"))
