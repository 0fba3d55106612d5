"""Learning on a real server while its model misbehaves for everybody, for one user, or for a while."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Lock

import httpx
import pytest

from reflexio.client.sync import ReflexioClient
from reflexio.server.process import free_port
from tests.acceptance.test_learning_with_a_model import FACT, KEY, attentive, contents, say, status, windows
from tests.builders import eventually, problem, turns
from tests.conftest import Org, Running
from tests.scripted_model import Answer, Asked, Failure, Raw, ScriptedModel, Spoken, scripted_model

USERS = ["ann", "bob", "cid"]


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with scripted_model(otherwise=attentive) as model:
        yield model


@pytest.fixture
def client(org: Org, model: ScriptedModel) -> Iterator[ReflexioClient]:
    with org.client() as client:
        endpoint = {"model": "scripted", "api_key": KEY, "api_base": model.url}
        client.update_config({"api_key_config": {"custom_endpoint": endpoint}})
        yield client


def states(server: Running, org: Org, user: str) -> set[str]:
    return {window.state for window in windows(server.folder, user, org.id)}


@pytest.mark.parametrize(
    "fault",
    [
        Raw(b'{"error": {"message": "upstream is away"}}'),
        Raw(b'{"choices": []}'),
        Failure(400, "Unknown request"),
        Failure(500, "oops"),
        Spoken("There is nothing to note."),
    ],
    ids=["error in a 200", "no choices", "rejected", "server error", "words"],
)
def test_a_fault_for_everybody_stalls_and_loses_nothing(
    client: ReflexioClient, model: ScriptedModel, server: Running, org: Org, fault: Answer
) -> None:
    model.otherwise = fault
    published = [say(client, user=user, wait_for_response=False, session_finished=True) for user in USERS]
    eventually(lambda: client.get_stall_state().stalled)
    assert client.get_stall_state().error_message
    assert "set_aside" not in set().union(*(states(server, org, user) for user in USERS))
    model.otherwise = attentive
    for answer in published:
        eventually(lambda answer=answer: status(client, answer).status == "done", seconds=60)  # type: ignore[misc]
    assert [contents(client, user) for user in USERS] == [["The user is vegetarian."]] * 3
    assert not client.get_stall_state().stalled


def test_a_server_that_ignores_tools_is_learned_from(client: ReflexioClient, model: ScriptedModel) -> None:
    model.otherwise = lambda asked: Spoken("Nice.") if asked.body.get("tools") else attentive(asked)
    assert say(client).profiles_added == 1
    assert contents(client) == ["The user is vegetarian."]


def test_a_window_that_is_too_long_is_learned_in_parts(client: ReflexioClient, model: ScriptedModel) -> None:
    def small(asked: Asked) -> Answer:
        is_short = asked.case.count("turn ") <= 3
        return attentive(asked) if is_short else Failure(400, "the request exceeds the available context size")

    model.otherwise = small
    answer = say(client, "Hello there.", "Hi.", "I am vegetarian.", "Noted.", "What is on?", "Soup.")
    assert (answer.learning_status, contents(client)) == ("done", ["The user is vegetarian."])


class SmallServer:
    """A llama.cpp server as it is installed: one slot, 4,096 tokens for prompt and answer, and a template that drops
    tools. It follows a schema where one is its response format."""

    def __init__(self) -> None:
        self.slot, self.most_waiting, self.waiting = Lock(), 0, 0

    def __call__(self, asked: Asked) -> Answer:
        self.waiting += 1
        self.most_waiting = max(self.most_waiting, self.waiting)
        with self.slot:
            self.waiting -= 1
            if asked.prompt_tokens >= 4_096:
                words = "the request exceeds the available context size, try increasing it"
                return Failure(400, words, "exceed_context_size_error")
            has_format = bool(asked.body.get("response_format"))
            return attentive(asked) if has_format else Spoken("Sure, I can help with that!")


@pytest.mark.slow
def test_an_unmodified_llama_server_learns_a_long_conversation(
    client: ReflexioClient, model: ScriptedModel, server: Running, org: Org
) -> None:
    small = SmallServer()
    model.otherwise = small
    client.update_config({"llm_config": {"concurrency": 1}, "window_size": 25, "stride_size": 20})
    talk = [f"{'The parcel has not come yet, and nobody answers. ' * 30}This is number {n}." for n in range(24)]
    talk[2] = FACT
    answers = [
        client.publish_interaction(user, turns(*talk), session_finished=True, wait_for_response=False) for user in USERS
    ]
    for answer in answers:
        eventually(lambda answer=answer: status(client, answer).status == "done", seconds=90)  # type: ignore[misc]
    assert [contents(client, user) for user in USERS] == [["The user is vegetarian."]] * 3
    assert "set_aside" not in set().union(*(states(server, org, user) for user in USERS))
    assert small.most_waiting == 1
    assert any(asked.prompt_tokens >= 4_096 for asked in model.requests)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"llm_config": {"generation_model_name": "deepseek:chat"}}, "DEEPSEEK_API_KEY"),
        ({"llm_config": {"generation_model_name": "nobody:chat"}}, "nobody:chat"),
        (
            {"api_key_config": {"custom_endpoint": {"model": "m", "api_key": "“k”", "api_base": "http://127.0.0.1:9"}}},
            "copy it",
        ),
        ({"llm_config": {"generation_model_name": "gpt-5"}}, "openai:<model>"),
        ({"api_key_config": {"custom_endpoint": {"model": "m", "api_key": "k", "api_base": "localhost"}}}, "http://"),
    ],
    ids=["no key", "no provider", "odd key", "no prefix", "no address"],
)
def test_a_model_that_cannot_be_used_is_refused_when_it_is_saved(
    http: httpx.Client, change: dict[str, object], words: str
) -> None:
    before = http.get("/api/get_config").json()
    assert words in problem(http.post("/api/set_config", json=change), 422)
    assert http.get("/api/get_config").json() == before


def test_a_model_without_a_key_is_told_at_the_start(tmp_path: Path) -> None:
    environment = {**os.environ, "REFLEXIO_MODEL": "xai:grok", "XAI_API_KEY": "", "REFLEXIO_DATA": str(tmp_path)}
    command = [sys.executable, "-m", "reflexio", "serve", "--port", str(free_port())]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert any("XAI_API_KEY" in line for line in iter(process.stderr.readline, ""))
        finally:
            process.terminate()
