"""Servers and workers on one PostgreSQL: what is published through one is learned by any and read through all."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from reflexio.client.sync import ReflexioClient
from reflexio.server.process import ServerProcess
from tests.builders import eventually, turns
from tests.scripted_model import Answer, Asked, scripted_model

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]

StartOn = Callable[..., ServerProcess]


@pytest.fixture
def start_on(empty_postgres: str, tmp_path: Path) -> Iterator[StartOn]:
    """Starts servers on one database, each with an empty folder of its own."""
    with ExitStack() as stack:
        count = 0

        def start(*options: str, **environment: str) -> ServerProcess:
            nonlocal count
            count += 1
            variables = {"REFLEXIO_DATABASE": empty_postgres, "REFLEXIO_PRIVATE_ADDRESSES": "1", **environment}
            server = ServerProcess(tmp_path / f"server{count}", variables, options)
            server.start()
            stack.callback(server.kill)
            return server

        yield start


@contextmanager
def worker(database: str, folder: Path, **environment: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A worker alone, without a server beside it."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("REFLEXIO_")}
    variables = {**inherited, "REFLEXIO_DATABASE": database, "REFLEXIO_PRIVATE_ADDRESSES": "1", **environment}
    command = [sys.executable, "-m", "reflexio", "worker", "--data", str(folder)]
    process = subprocess.Popen(command, env=variables, start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_what_one_server_stores_the_other_one_finds(start_on: StartOn) -> None:
    first, second = start_on(), start_on("--no-worker")
    with ReflexioClient(url_endpoint=first.url) as here, ReflexioClient(url_endpoint=second.url) as there:
        answer = here.publish_interaction("amira", turns("I am vegetarian.", "Good to know!"), wait_for_response=True)
        assert (answer.learning_status, answer.profiles_added, answer.storage_type) == ("done", 1, "postgresql")
        context = there.get_context("Where could we have lunch?", user_id="amira").context
        assert "vegetarian" in context
        there.add_user_playbook([{"user_id": "amira", "content": "Offer tea before coffee"}])
        found = here.search("tea or coffee", user_id="amira")
        assert [row.content for row in found.user_playbooks] == ["Offer tea before coffee"]
        there.publish_interaction("bob", turns("I am allergic to nuts.", "Noted."), session_finished=True)
        eventually(lambda: here.get_profiles("bob", force_refresh=True).user_profiles != [])
        here.clear_user_data("amira")
        assert there.get_profiles("amira", force_refresh=True).user_profiles == []


def test_the_jobs_of_a_killed_worker_are_taken_over(start_on: StartOn, empty_postgres: str, tmp_path: Path) -> None:
    asked: list[str] = []
    released = False

    def slow(question: Asked) -> Answer:
        asked.append(question.case)
        deadline = time.monotonic() + 60
        while not released and time.monotonic() < deadline:
            time.sleep(0.02)
        return {"profiles": [], "playbooks": []} if "decisions" not in question.wants else {"decisions": []}

    with scripted_model(otherwise=slow) as model, ExitStack() as stack:
        variables = {
            "REFLEXIO_MODEL": "openai:scripted",
            "OPENAI_BASE_URL": model.url,
            "OPENAI_API_KEY": "not-a-real-key",
        }
        server = start_on("--no-worker", **variables)
        first = stack.enter_context(worker(empty_postgres, tmp_path / "w1", **variables))
        with ReflexioClient(url_endpoint=server.url) as client:
            answer = client.publish_interaction("ann", turns("I live in Oslo.", "Noted."), session_finished=True)
            assert answer.request_id
            eventually(lambda: len(asked) == 1)
            stack.enter_context(worker(empty_postgres, tmp_path / "w2", **variables))
            os.killpg(first.pid, signal.SIGKILL)
            killed = time.monotonic()
            eventually(lambda: len(asked) == 2)
            assert time.monotonic() - killed < 30
            released = True
            eventually(lambda: client.get_learning_status(str(answer.request_id)) == "done")
            assert len(asked) == 2


def test_without_a_worker_a_waited_publish_says_so_and_loses_nothing(start_on: StartOn) -> None:
    server = start_on("--no-worker")
    with ReflexioClient(url_endpoint=server.url) as client:
        answer = client.publish_interaction("ann", turns("I am vegan.", "Noted."), wait_for_response=True)
        assert (answer.learning_status, answer.learning_reason) != ("done", "covered")
        assert "reflexio worker" in str(answer.learning_reason)
        assert client.get_interactions("ann").interactions != []


def test_commands_of_the_operator_work_on_postgresql(empty_postgres: str, tmp_path: Path) -> None:
    environment = {**os.environ, "REFLEXIO_DATABASE": empty_postgres, "REFLEXIO_DATA": str(tmp_path)}

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "reflexio", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    assert "rfx_" in run("keys", "create", "--org", "acme").stdout
    assert "acme" in run("keys", "list").stdout
    examined = run("doctor").stdout
    assert "PostgreSQL, schema" in examined
    refused = run("backup", str(tmp_path / "copy"))
    assert refused.returncode != 0
    assert "pg_dump" in refused.stderr


def test_a_server_on_an_address_that_does_not_answer_ends_with_one_line(tmp_path: Path) -> None:
    address = "postgresql://ann:secret-word@127.0.0.1:1/none"
    command = [sys.executable, "-m", "reflexio", "serve", "--port", "0", "--database", address, "--data", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode != 0
    assert "REFLEXIO_DATABASE" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "secret-word" not in ended.stderr


def test_health_of_a_server_does_not_name_the_database(start_on: StartOn) -> None:
    server = start_on("--no-worker")
    assert "reflexio-pg-" not in httpx.get(f"{server.url}/health").text
