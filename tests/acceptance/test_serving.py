"""What a running server does around its routes."""

import json
import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import httpx
import pytest

import reflexio
from reflexio.client.sync import ReflexioClient
from reflexio.errors import NotAuthorised, RateLimited
from tests.builders import body, every_turn, problem, turns
from tests.conftest import Running, StartServer

WHOAMI = "/api/whoami"


def test_the_version_is_true(open_server: Running) -> None:
    assert httpx.get(f"{open_server.url}/meta/version").json() == {"version": version(reflexio.DISTRIBUTION)}


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1"},
        {"X-Real-IP": "127.0.0.1"},
        {"Via": "1.1 Caddy"},
        {"X-Forwarded-Host": "127.0.0.1"},
        {"CF-Ray": "8f0c2ee0dd2b9a3c-FRA"},
        {"Host": "reflexio.example.org"},
        {"Host": "127.0.0.1.example.org"},
        {"Host": "[broken"},
        {"Origin": "https://example.org"},
        {"Origin": "null"},
        {"Origin": "http://localhost.example.org"},
        {"Origin": "http://[broken"},
    ],
)
def test_without_keys_only_callers_on_this_machine_are_served(open_server: Running, headers: dict[str, str]) -> None:
    answer = httpx.get(open_server.url + WHOAMI, headers=headers)
    assert "reflexio keys create" in problem(answer, 403)


def test_with_require_key_nobody_is_served_before_there_is_one(start_server: StartServer) -> None:
    server = start_server(REFLEXIO_REQUIRE_KEY="1")
    problem(httpx.get(server.url + WHOAMI), 401)
    assert httpx.get(server.url + "/health").status_code == 200


@pytest.mark.parametrize(
    "headers", [{}, {"Host": "localhost:8081"}, {"Host": "[::1]:1"}, {"Origin": "http://localhost:3000"}]
)
def test_callers_on_this_machine_are_served_without_a_key(open_server: Running, headers: dict[str, str]) -> None:
    assert httpx.get(open_server.url + WHOAMI, headers=headers).json()["org_id"] == "default"


def test_a_head_of_megabytes_is_refused_before_anybody_knows_who_speaks(open_server: Running) -> None:
    address = httpx.URL(open_server.url)
    with socket.create_connection((address.host, address.port or 80), timeout=20) as line:
        line.sendall(b"GET /api/whoami HTTP/1.1\r\nX: " + b"a" * 200_000)
        assert line.recv(65_536).startswith(b"HTTP/1.1 431")
    assert httpx.get(open_server.url + WHOAMI).status_code == 200


def test_a_key_nobody_asked_for_is_no_obstacle(open_server: Running) -> None:
    with ReflexioClient("any key", open_server.url) as client:
        assert client.whoami().org_id == "default"


def test_the_operators_key_opens_the_default_organisation(start_server: StartServer) -> None:
    server = start_server(REFLEXIO_API_KEY="the-operators-key")
    with ReflexioClient("the-operators-key", server.url) as client:
        assert client.whoami().org_id == "default"
    for wrong in ("", "another"):
        with ReflexioClient(wrong, server.url) as client, pytest.raises(NotAuthorised):
            client.whoami()


def test_keys_are_made_listed_and_revoked_on_the_command_line(tmp_path: Path) -> None:
    def keys(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "reflexio", "keys", *words, "--data", str(tmp_path)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    nothing = keys("list")
    assert nothing.returncode == 1
    assert "There is no database in" in nothing.stderr
    assert not list(tmp_path.iterdir())
    token = keys("create", "--org", "acme", "--label", "laptop").stdout.strip()
    assert token.startswith("rfx_")
    listed = keys("list").stdout
    assert "acme" in listed
    assert "laptop" in listed
    assert token not in listed
    assert token.encode() not in (tmp_path / "reflexio.db").read_bytes()
    revoked = keys("revoke", "1")
    assert revoked.returncode == 0
    assert "That was the last key" in revoked.stderr
    assert keys("list").stdout == ""
    again = keys("revoke", "1")
    assert again.returncode == 1
    assert "There is no key 1" in again.stderr
    assert "Traceback" not in again.stderr


def test_request_ids_are_echoed_or_made(open_server: Running) -> None:
    def of(given: str) -> str:
        return str(httpx.get(open_server.url + WHOAMI, headers={"X-Request-ID": given}).headers["x-request-id"])

    assert of("trace-7.a:b") == "trace-7.a:b"
    for strange in ("", "a b", "x" * 129, "<script>"):
        assert len(of(strange)) == 36


def test_rate_limits_answer_429_and_say_when(start_server: StartServer) -> None:
    server = start_server(REFLEXIO_RATE_LIMITS="whoami=2/minute")
    with httpx.Client(base_url=server.url) as http:
        assert [http.get(WHOAMI).status_code for _ in range(2)] == [200, 200]
        answer = http.get(WHOAMI)
        problem(answer, 429)
        assert 29 <= int(answer.headers["retry-after"]) <= 30
        assert http.get("/api/get_config").is_success
        assert http.get("/health").is_success
    with ReflexioClient(url_endpoint=server.url, retries=0) as client, pytest.raises(RateLimited) as refused:
        client.whoami()
    assert refused.value.retry_after > 20


def test_without_limits_nobody_is_turned_away(open_server: Running) -> None:
    with httpx.Client(base_url=open_server.url) as http:
        assert all(http.get(WHOAMI).is_success for _ in range(200))


def test_browsers_are_let_in_only_from_named_origins(start_server: StartServer, open_server: Running) -> None:
    asked = {"Origin": "https://app.example.org", "Access-Control-Request-Method": "POST"}
    assert "access-control-allow-origin" not in httpx.options(open_server.url + WHOAMI, headers=asked).headers

    server = start_server(REFLEXIO_CORS_ORIGINS="https://app.example.org", REFLEXIO_API_KEY="k")
    named = httpx.options(server.url + WHOAMI, headers=asked)
    assert named.headers["access-control-allow-origin"] == "https://app.example.org"
    other = httpx.options(server.url + WHOAMI, headers={**asked, "Origin": "https://example.com"})
    assert "access-control-allow-origin" not in other.headers
    call = httpx.get(server.url + WHOAMI, headers={"Origin": "https://app.example.org", "Authorization": "Bearer k"})
    assert call.headers["access-control-allow-origin"] == "https://app.example.org"


def test_a_smaller_body_limit_can_be_set(start_server: StartServer) -> None:
    server = start_server(REFLEXIO_MAX_BODY_BYTES="1000")
    url = f"{server.url}/api/publish_interaction"
    assert httpx.post(url, json=body()).is_success
    problem(httpx.post(url, json=body(agent_version="x" * 1000)), 413)


def test_any_user_agent_is_served(open_server: Running) -> None:
    for agent in ("", "curl/8", "python-requests/2", "sqlmap"):
        assert httpx.get(open_server.url + WHOAMI, headers={"User-Agent": agent}).is_success


def test_a_server_on_this_machine_is_found_where_a_proxy_is_set(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("http_proxy", "all_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    server = start_server()
    with ReflexioClient(url_endpoint=server.url, retries=0) as client:
        assert client.whoami().success


def test_a_clean_stop_loses_nothing(start_server: StartServer) -> None:
    server = start_server()
    answered: list[str] = []
    enough = threading.Event()

    def publish(number: int) -> None:
        with ReflexioClient(url_endpoint=server.url, retries=0, fail_open=True) as client:
            for count in range(1000):
                done = client.publish_interaction("ann", turns(f"{number}-{count}"))
                if not done.success:
                    return
                answered.append(f"{number}-{count}")
                if len(answered) >= 50:
                    enough.set()

    with ThreadPoolExecutor(4) as threads:
        running = [threads.submit(publish, number) for number in range(4)]
        assert enough.wait(60)
        server.stop()
        for each in running:
            each.result()
    server.start()
    with ReflexioClient(url_endpoint=server.url) as client:
        found = [turn.content for turn in every_turn(client, "ann")]
    assert set(answered) <= set(found)
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("variable", "value"),
    [("REFLEXIO_PORT", "many"), ("REFLEXIO_RATE_LIMITS", "often"), ("REFLEXIO_MAX_BODY_BYTES", "-1")],
)
def test_a_wrong_setting_is_named(variable: str, value: str, tmp_path: Path) -> None:
    done = serve(tmp_path, **{variable: value})
    assert done.returncode == 1
    assert f"{variable}: {value!r}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_limit_for_a_route_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = serve(tmp_path, REFLEXIO_RATE_LIMITS="600/minute,publish=1/day")
    assert done.returncode == 1
    assert "there is no route 'publish'; did you mean 'publish_interaction'?" in done.stderr


def test_a_port_in_use_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = serve(tmp_path, REFLEXIO_PORT=port)
    assert done.returncode == 1
    assert f"Cannot listen on 127.0.0.1:{port}; choose another with --port" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/healthz", "/", "/meta/version"])
def test_head_requests_get_the_headers_of_the_get_response(server: Running, path: str) -> None:
    head, get = httpx.head(server.url + path), httpx.get(server.url + path)
    assert head.is_success
    assert head.content == b""
    assert head.headers["content-length"] == str(len(get.content))


def serve(folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "reflexio", "serve", "--data", str(folder)]
    if "REFLEXIO_PORT" not in environment:
        command += ["--port", "0"]
    env = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env, timeout=60)


def test_a_database_that_cannot_be_used_stops_the_start_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "reflexio.db").write_bytes(b"not a database at all" * 100)
    done = serve(tmp_path)
    assert done.returncode != 0
    assert "restore a backup" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_api_can_be_tried_in_a_browser_without_a_network(server: Running) -> None:
    page = httpx.get(f"{server.url}/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "connect-src 'self'" in page.headers["content-security-policy"]
    assert 'fetch("openapi.json")' in page.text
    assert "//" not in page.text.replace("// ", "")


def test_the_document_says_how_a_key_is_sent(open_server: Running) -> None:
    document = httpx.get(f"{open_server.url}/openapi.json").json()
    assert document["components"]["securitySchemes"] == {"key": {"type": "http", "scheme": "bearer"}}
    assert document["security"] == [{"key": []}, {}]


def test_the_document_names_every_route(open_server: Running) -> None:
    paths = httpx.get(f"{open_server.url}/openapi.json").json()["paths"]
    assert "/api/publish_interaction" in paths
    assert json.dumps(paths).count("operationId") == len(
        {operation["operationId"] for methods in paths.values() for operation in methods.values()}
    )
