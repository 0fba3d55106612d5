"""Requests of an attacker on a real server: what is said twice, masses of small values, paths and upgrades."""

import json
import socket

import httpx
import pytest

from tests.builders import problem
from tests.conftest import Org, Running

MEGABYTE = 1024 * 1024
BODY = json.dumps({"user_id": "ann", "interaction_data_list": [{"content": "smuggled"}]}).encode()
HEADS = {
    "length and chunks": b"Content-Length: 5\r\nTransfer-Encoding: chunked",
    "two lengths": b"Content-Length: 5\r\nContent-Length: 50",
    "a negative length": b"Content-Length: -1",
    "a length with a sign": b"Content-Length: +5",
    "a length beyond all numbers": b"Content-Length: 99999999999999999999999",
    "an unknown encoding": b"Transfer-Encoding: xchunked\r\nContent-Length: 5",
    "a blank before the colon": b"Transfer-Encoding : chunked\r\nContent-Length: 5",
    "a folded header": b"X-A: b\r\n  folded\r\nContent-Length: 5",
    "a bare carriage return": b"X-A: b\rX-B: c\r\nContent-Length: 5",
    "a NUL": b"X-A: b\0c\r\nContent-Length: 5",
}


def exchange(server: Running, sent: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=10) as caller:
        caller.sendall(sent)
        received = b""
        while part := caller.recv(65_536):
            received += part
        return received


@pytest.mark.parametrize("head", HEADS)
def test_a_request_that_two_readers_would_read_differently_is_refused(server: Running, org: Org, head: str) -> None:
    start = f"POST /api/publish_interaction HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {org.token}\r\n".encode()
    whole = start + b"Content-Type: application/json\r\n" + HEADS[head] + b"\r\n\r\n" + BODY
    answer = exchange(server, whole + b"GET /api/whoami HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    with org.http() as http:
        assert http.get("/api/get_all_interactions").json()["interactions"] == []


@pytest.mark.parametrize(
    "path",
    [
        *("//api/whoami", "/health/../api/whoami", "/health%2f..%2fapi/whoami", "/docs;/api/whoami", "/metrics%0a"),
        *("/docs/../mcp", "/v1/../api/whoami", "/static/../api/whoami", "/static/..%2f..%2fapp.py"),
    ],
)
def test_no_path_leads_around_authentication(server: Running, path: str) -> None:
    answer = exchange(server, f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert answer.split()[1] in (b"401", b"404"), answer[:200]
    assert b"org_id" not in answer
    assert b"import " not in answer


FLOODS = {
    "numbers": b'{"a":[' + b"1," * (7 * MEGABYTE) + b"1]}",
    "objects": b'{"interaction_data_list":[' + b"{}," * (5 * MEGABYTE) + b"{}]}",
    "fields": json.dumps({f"field {number}": 1 for number in range(90_000)}).encode(),
    "a bomb for unpacking": b"\x1f\x8b\x08" + b"\0" * 1000,
}


@pytest.mark.parametrize("path", ["/api/publish_interaction", "/api/set_config", "/mcp"])
@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_of_values_is_refused_with_a_problem(http: httpx.Client, flood: str, path: str) -> None:
    headers = {"Content-Type": "application/json"}
    if flood.startswith("a bomb"):
        headers["Content-Encoding"] = "gzip"
    answer = http.post(path, content=FLOODS[flood], headers=headers)
    problem(answer, 400 if flood.startswith("a bomb") else 422)
    assert len(answer.content) < 200_000
