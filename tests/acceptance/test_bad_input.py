"""Bad input is answered with a 4xx that says what is wrong, and nothing of it is stored."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.builders import body, name, problem, turns
from tests.conftest import Org

PUBLISH = "/api/publish_interaction"
POSTS = (PUBLISH, "/api/get_interactions", "/api/get_requests", "/api/finalize_session", "/api/clear_user_data")
SQL = "x'; DROP TABLE interactions; --\" OR 1=1 /*"


def turn(**fields: Any) -> dict[str, Any]:
    return body(interaction_data_list=[{"content": "x", **fields}])


def stored(http: httpx.Client) -> int:
    return len(http.get("/api/get_all_interactions", params={"limit": 10_000}).json()["interactions"])


@pytest.fixture(autouse=True)
def _nothing_is_stored(http: httpx.Client) -> Iterator[None]:
    """Whatever a test of this file sends, the organisation is as empty afterwards as it was before."""
    yield
    assert stored(http) == 0
    assert http.post("/api/get_requests", json={}).json()["sessions"] == []


@pytest.mark.parametrize(
    ("sent", "named"),
    [
        ({}, "user_id"),
        ({"user_id": "ann"}, "interaction_data_list"),
        (body(user_id=None), "user_id"),
        (body(user_id=7), "user_id"),
        (body(user_id=""), "user_id"),
        (body(user_id="   "), "user_id"),
        (body(user_id="x" * 256), "user_id"),
        (body(user_id=["ann"]), "user_id"),
        (body(colour="blue"), "colour"),
        (body(interaction_data_list=[]), "interaction_data_list"),
        (body(interaction_data_list={}), "interaction_data_list"),
        (body(interaction_data_list=None), "interaction_data_list"),
        (body(interaction_data_list=["hello"]), "interaction_data_list.0"),
        (body(interaction_data_list=[{}]), "empty"),
        (body(interaction_data_list=[{"content": ""}, {"content": ""}]), "empty"),
        (body(interaction_data_list=[*turns(), {"content": 3}]), "interaction_data_list.2.content"),
        (body(source="Not A Source!"), "source"),
        (body(session_finished="perhaps"), "session_finished"),
        (body(evaluation_only=True, force_extraction=True), "evaluation_only"),
        (body(retrieval_experiment_arm="third"), "retrieval_experiment_arm"),
        (turn(created_at=-1), "created_at"),
        (turn(created_at=10**15), "created_at"),
        (turn(created_at=10**30), "created_at"),
        (turn(created_at=1.5), "created_at"),
        (turn(created_at="yesterday"), "created_at"),
        (turn(mood="good"), "mood"),
        (turn(user_action="jump"), "user_action"),
        (turn(user_action="click"), "user_action_description"),
        (turn(interacted_image_url="file:///etc/passwd"), "interacted_image_url"),
        (turn(interacted_image_url="http://169.254.169.254/latest"), "metadata"),
        (turn(interacted_image_url="http://[broken"), "interacted_image_url"),
        (turn(interacted_image_url="http://[::ffff:169.254.169.254]/latest"), "metadata"),
        (turn(interacted_image_url="http://2852039166/latest"), "metadata"),
        (turn(interacted_image_url="http://0xa9fea9fe/latest"), "metadata"),
        (turn(interacted_image_url="http://metadata.google.internal./"), "metadata"),
        (turn(interacted_image_url="https://a/b.png", image_encoding="aGk="), "not both"),
        (turn(tools_used=[{}]), "tool_name"),
        (turn(tools_used=[{"tool_name": " "}]), "tool_name"),
        (turn(tools_used=[{"tool_name": "a", "tool_data": "b"}]), "tool_data"),
        (turn(tools_used=[{"tool_name": "a"}] * 1001), "tools_used"),
        (turn(tools_used=[{"tool_name": "a", "tool_data": {"n": 2**64}}]), "tool_data"),
        (turn(tools_used=[{"tool_name": "a", "tool_data": {"n": [{"m": -(2**63) - 1}]}}]), "tool_data"),
        (turn(citations=[{"kind": "rumour", "real_id": "1"}]), "citations.0.kind"),
        (turn(retrieved_learnings=[{"kind": "profile", "learning_id": ""}]), "learning_id"),
        (turn(content="x" * 1_000_001), "content"),
        ([], "body"),
        ("text", "body"),
        (None, "body"),
    ],
)
def test_a_publish_that_is_wrong(http: httpx.Client, sent: Any, named: str) -> None:
    assert named in problem(http.post(PUBLISH, json=sent), 422)


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"user_id": NaN}',
        b'{"user_id": Infinity}',
        b'{"user_id": 1e999}',
        b"\xff\xfe{",
        b'{"user_id": "\xed\xa0\x80"}',
        b'{"user_id": "\\ud800"}',
        b'{"user_id": "\\udc00 alone"}',
        b'{"user_id": "a\x00b"}',
        b'{"user_id": "a\\u0000b"}',
        b'{"\\u0000": "a"}',
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b"[" * 900 + b'"\\u0000"' + b"]" * 900,
    ],
    ids=[
        "empty",
        "open",
        "not JSON",
        "NaN",
        "infinity",
        "too large a number",
        "not UTF-8",
        "surrogate bytes",
        "lone surrogate",
        "lone low surrogate",
        "NUL byte",
        "escaped NUL",
        "NUL in a name",
        "deep lists",
        "deep objects",
        "NUL far down",
    ],
)
def test_a_body_that_is_no_json_of_ours(http: httpx.Client, path: str, sent: bytes) -> None:
    answer = http.post(path, content=sent, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422), answer.text
    problem(answer, answer.status_code)


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_another_content_type(http: httpx.Client, content_type: str) -> None:
    answer = http.post(PUBLISH, content=json.dumps(body()), headers={"Content-Type": content_type})
    assert "application/json" in problem(answer, 415)


@pytest.mark.parametrize("levels", [33, 200, 450, 600, 900, 1100])
def test_tool_data_nested_too_deep(http: httpx.Client, levels: int) -> None:
    deep = '{"a":' * levels + "1" + "}" * levels
    sent = json.dumps(turn(tools_used=[{"tool_name": "t", "tool_data": "DEEP"}])).replace('"DEEP"', deep)
    answer = http.post(PUBLISH, content=sent, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422), answer.text
    problem(answer, answer.status_code)


@pytest.mark.parametrize("levels", [200, 450, 900])
@pytest.mark.parametrize("key", ["playbook_configs", "api_key_config", "unknown"])
def test_a_configuration_nested_too_deep(http: httpx.Client, levels: int, key: str) -> None:
    deep = f'{{"{key}":' + '{"a":' * levels + "1" + "}" * levels + "}"
    answer = http.post("/api/set_config", content=deep, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422), answer.text
    problem(answer, answer.status_code)


def test_a_large_body_is_refused_by_its_length(http: httpx.Client) -> None:
    sent = json.dumps(turn(image_encoding="x" * 20_000_000)).encode()
    assert "REFLEXIO_MAX_BODY_BYTES" in problem(
        http.post(PUBLISH, content=sent, headers={"Content-Type": "application/json"}), 413
    )


def test_a_large_body_without_a_length_is_refused_too(http: httpx.Client) -> None:
    def pieces() -> Iterator[bytes]:
        yield b'{"user_id": "ann", "interaction_data_list": [{"content": "'
        for _ in range(20):
            yield b"x" * 1_000_000
        yield b'"}]}'

    answer = http.post(PUBLISH, content=pieces(), headers={"Content-Type": "application/json"})
    assert "REFLEXIO_MAX_BODY_BYTES" in problem(answer, 413)


@pytest.mark.parametrize(
    "cursor", ["x", "!!!!", "MTIz", "LTEuMg", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5LjE", "é", "a" * 101, "MS4y.", "\n"]
)
def test_cursors_that_nobody_gave_out(http: httpx.Client, cursor: str) -> None:
    for answer in (
        http.post("/api/get_interactions", json={"user_id": "ann", "cursor": cursor}),
        http.post("/api/get_requests", json={"cursor": cursor}),
        http.get("/api/get_all_interactions", params={"cursor": cursor}),
    ):
        assert "cursor" in problem(answer, 422)


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/api/get_interactions", {"user_id": "ann", "top_k": 0}),
        ("/api/get_interactions", {"user_id": "ann", "top_k": -1}),
        ("/api/get_interactions", {"user_id": "ann", "top_k": 1.5}),
        ("/api/get_interactions", {"user_id": "ann", "start_time": "soon"}),
        ("/api/get_interactions", {"user_id": "ann", "start_time": 1e300}),
        ("/api/get_interactions", {"user_id": "ann", "start_time": 10**30}),
        ("/api/get_requests", {"offset": -1}),
        ("/api/get_requests", {"offset": 10**18}),
        ("/api/get_requests", {"page": 2}),
        ("/api/finalize_session", {"user_id": "ann"}),
        ("/api/clear_user_data", {"user_id": "ann", "also": "bob"}),
        ("/api/clear_user_data", {}),
        ("/api/clear_user_data", {"user_id": ""}),
    ],
)
def test_questions_that_are_wrong(http: httpx.Client, path: str, sent: dict[str, Any]) -> None:
    problem(http.post(path, json=sent), 422)


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/api/delete_interaction", {"user_id": "ann", "interaction_id": 0}),
        ("/api/delete_interaction", {"user_id": "ann", "interaction_id": 2**63}),
        ("/api/delete_interaction", {"user_id": "ann", "interaction_id": 10**40}),
        ("/api/delete_interaction", {"interaction_id": 1}),
        ("/api/delete_request", {}),
        ("/api/delete_request", {"request_id": ""}),
        ("/api/delete_session", {"session_id": " "}),
        ("/api/delete_requests_by_ids", {"request_ids": []}),
        ("/api/delete_requests_by_ids", {"request_ids": ["x"] * 10_001}),
        ("/api/delete_requests_by_ids", {"request_ids": "x"}),
    ],
)
def test_deletions_that_are_wrong(http: httpx.Client, path: str, sent: dict[str, Any]) -> None:
    problem(http.request("DELETE", path, json=sent), 422)


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("/api/get_all_interactions", {"limit": "0"}),
        ("/api/get_all_interactions", {"limit": "many"}),
        ("/api/storage_stats", {}),
        ("/api/storage_stats", {"user_id": ""}),
        ("/api/storage_stats", {"user_id": "a\0b"}),
        ("/api/learning_status", {"request_id": "\0"}),
        ("/api/learning_status", {}),
    ],
)
def test_queries_that_are_wrong(http: httpx.Client, path: str, params: dict[str, str]) -> None:
    problem(http.get(path, params=params), 422)


def test_huge_limits_are_only_large(http: httpx.Client) -> None:
    assert http.get("/api/get_all_interactions", params={"limit": "9" * 30}).is_success
    assert http.post("/api/get_interactions", json={"user_id": "ann", "top_k": 2**62}).is_success


@pytest.mark.parametrize(
    "path",
    [
        "/api/../../etc/passwd",
        "/api/%2e%2e/%2e%2e/etc/passwd",
        "/api/..%2f..%2fetc/passwd",
        "/api//get_config",
        "/api/get_config/",
        "/API/GET_CONFIG",
        "/api/get_config%00",
        "/api/%ff",
        "/health/..;/api/get_config",
        "/docs/../api/nothing",
    ],
)
def test_paths_that_lead_nowhere(http: httpx.Client, path: str) -> None:
    answer = http.get(path)
    assert answer.status_code in (307, 404, 405), answer.text


def test_a_raw_request_with_a_strange_path_is_not_a_500(org: Org) -> None:
    port = int(org.url.rpartition(":")[2])
    for path in (b"/api/../../etc/passwd", b"//", b"/\\..\\..", b"*", b"http://elsewhere/api/get_config"):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as wire:
            wire.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = b"".join(iter(lambda wire=wire: wire.recv(65_536), b""))  # type: ignore[misc]
        assert answer.split()[1][:1] in (b"3", b"4"), (path, answer[:200])


def test_a_method_that_does_not_exist(http: httpx.Client) -> None:
    problem(http.put(PUBLISH, json=body()), 405)


def test_an_idempotency_key_that_is_too_long(http: httpx.Client) -> None:
    assert (
        "idempotency-key"
        in problem(http.post(PUBLISH, json=body(), headers={"Idempotency-Key": "k" * 256}), 422).lower()
    )


def test_sql_in_every_text_is_only_text(http: httpx.Client) -> None:
    ids = [SQL, name("request")]
    sent = {
        "request_id": SQL,
        "user_id": SQL,
        "session_id": SQL,
        "agent_version": SQL,
        "retrieval_experiment_id": SQL,
        "interaction_data_list": [
            {
                "role": SQL,
                "content": SQL,
                "shadow_content": SQL,
                "expert_content": SQL,
                "user_action": "click",
                "user_action_description": SQL,
                "image_encoding": SQL,
                "tools_used": [{"tool_name": SQL, "tool_data": {SQL: SQL}, "status": SQL}],
                "citations": [{"kind": "profile", "real_id": SQL, "tag": SQL, "title": SQL}],
                "retrieved_learnings": [{"kind": "profile", "learning_id": SQL}],
            }
        ],
    }
    assert http.post(PUBLISH, json=sent, headers={"Idempotency-Key": SQL}).is_success
    http.post(PUBLISH, json=body(request_id=ids[1], user_id="other")).raise_for_status()

    found = http.post("/api/get_interactions", json={"user_id": SQL}).json()["interactions"]
    assert len(found) == 1
    assert found[0]["tools_used"] == sent["interaction_data_list"][0]["tools_used"]  # type: ignore[index]
    assert len(http.post("/api/get_requests", json={"user_id": SQL, "session_id": SQL}).json()["sessions"]) == 1
    assert http.get("/api/storage_stats", params={"user_id": SQL}).json()["interaction_count"] == 1
    assert http.get("/api/learning_status", params={"request_id": SQL}).json()["status"] == "pending"
    assert http.post("/api/finalize_session", json={"user_id": SQL, "session_id": SQL}).json()["accepted"]
    problem(http.post("/api/get_requests", json={"source": SQL}), 422)
    assert http.request("DELETE", "/api/delete_request", json={"request_id": SQL}).is_success
    assert stored(http) == 2
    assert http.request("DELETE", "/api/delete_requests_by_ids", json={"request_ids": ids}).json()["deleted_count"] == 1


def test_valid_text_of_every_plane_is_kept(http: httpx.Client) -> None:
    text = "tab\t newline\n bell\x07 zero-width\u200b rtl\u202e pair\U0001f600 last\U0010ffff not-a-char\uffff"
    sent = turn(content=text, role=text, tools_used=[{"tool_name": "t", "tool_data": {text: text}}])
    http.post(PUBLISH, json=sent).raise_for_status()
    found = http.post("/api/get_interactions", json={"user_id": "ann"}).json()["interactions"][0]
    assert (found["content"], found["role"], found["tools_used"][0]["tool_data"]) == (text, text, {text: text})
    http.post("/api/clear_user_data", json={"user_id": "ann"}).raise_for_status()


def test_waiting_is_true_or_false(http: httpx.Client) -> None:
    answer = http.post(PUBLISH, params={"wait_for_response": "banana"}, json=body())
    assert "wait_for_response is true or false, not 'banana'" in problem(answer, 422)
