"""`reflexio doctor` on real folders and a scripted model over HTTP."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reflexio.app import DATABASE
from reflexio.learning import stall
from reflexio.ports.storage import LearnedWindow
from tests.builders import new_key, on_database, request, said
from tests.scripted_model import Failure, ScriptedModel, Spoken, scripted_model

KEY = "sk-secret-of-the-doctor"


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with scripted_model(otherwise={"word": "yes"}) as served:
        yield served


def run(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reflexio", "doctor", "--data", str(folder), *options]
    variables = {"PATH": "", "HOME": str(folder), **environment}
    process = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, env=variables)
    assert KEY not in process.stdout + process.stderr
    assert "Traceback" not in process.stderr
    return process


def examine(folder: Path, **environment: str) -> tuple[int, dict[str, Any]]:
    process = run(folder, "--json", **environment)
    return process.returncode, json.loads(process.stdout)


def finding(report: dict[str, Any], part: str) -> dict[str, Any]:
    return next(found for found in report["findings"] if found["part"].startswith(part))


def with_model(model: ScriptedModel) -> dict[str, str]:
    return {"REFLEXIO_MODEL": "openai:scripted", "OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": KEY}


def test_a_sound_installation_has_nothing_broken(tmp_path: Path, model: ScriptedModel) -> None:
    new_key(tmp_path, "acme")
    code, report = examine(tmp_path, **with_model(model))
    assert (code, report["ok"]) == (0, True)
    assert "structured output by tools" in finding(report, "model openai:scripted")["detail"]
    assert "all-MiniLM-L6-v2" in finding(report, "embedder")["detail"]
    assert str(tmp_path) in finding(report, "database")["detail"]
    assert "0 users" in finding(report, "learning of acme")["detail"]
    assert model.calls == 1


def test_it_shows_how_a_structured_answer_was_reached(tmp_path: Path, model: ScriptedModel) -> None:
    model.otherwise = lambda asked: {"word": "yes"} if "response_format" in asked.body else Spoken("Yes!")
    code, report = examine(tmp_path, **with_model(model))
    assert code == 0
    assert "structured output by json_schema" in finding(report, "model")["detail"]


@pytest.mark.parametrize(
    ("environment", "part", "words"),
    [
        ({"REFLEXIO_MODEL": "deepseek:chat"}, "model", "DEEPSEEK_API_KEY"),
        ({"REFLEXIO_MODEL": "nobody:chat"}, "model", "REFLEXIO_MODEL"),
        ({"REFLEXIO_EMBEDDER": "openai:text-embedding-3-small"}, "embedder", "OPENAI_API_KEY"),
        (
            {"REFLEXIO_MODEL": "openai:x", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"},
            "model",
            "Start the model's server",
        ),
    ],
    ids=["key", "provider", "embedder", "address"],
)
def test_what_is_broken_is_said_with_what_to_do(
    tmp_path: Path, environment: dict[str, str], part: str, words: str
) -> None:
    code, report = examine(tmp_path, **environment)
    found = finding(report, part)
    assert (code, report["ok"], found["ok"]) == (1, False, False)
    assert words in found["detail"] + found["remedy"]


def test_a_refused_key_is_broken_and_not_shown(tmp_path: Path, model: ScriptedModel) -> None:
    model.otherwise = Failure(401, f"Incorrect key {KEY}")
    code, report = examine(tmp_path, **with_model(model))
    assert code == 1
    assert "Incorrect key" in finding(report, "model")["detail"]


def test_stalls_and_windows_that_were_set_aside_are_findings(tmp_path: Path) -> None:
    window = LearnedWindow("w", "ann", "set_aside", (1,), {}, error="It was too odd.", created_at=5)

    async def prepare(database: Any) -> None:
        store = database.of("default")
        await store.write(lambda tx: stall.enter(tx, "provider_error", "The model is away.", 5))
        await store.write(lambda tx: tx.windows.add(window))

    on_database(tmp_path, prepare)
    code, report = examine(tmp_path)
    details = " ".join(found["detail"] for found in report["findings"] if not found["ok"])
    assert code == 1
    assert "The model is away." in details
    assert "1 window is set aside" in details
    assert "It was too odd." in details


def test_a_damaged_page_and_rows_that_contradict_each_other_are_findings(tmp_path: Path) -> None:
    async def publish(database: Any) -> None:
        waiting = request()
        store = database.of("default")
        await store.write(lambda tx: tx.requests.add(waiting))
        await store.write(lambda tx: tx.interactions.add(waiting, said("Where is my parcel?")))
        await database.wipe()

    on_database(tmp_path, publish)
    code, report = examine(tmp_path)
    assert (code, finding(report, "database")["ok"]) == (1, False)  # nobody has marked the user
    assert "1 turns that learning has forgotten" in finding(report, "database")["detail"]
    file = tmp_path / DATABASE
    content = bytearray(file.read_bytes())
    page = content.rindex(b"Where is my parcel?") // 4096 * 4096
    content[page : page + 12] = b"\xff" * 12
    file.write_bytes(content)
    code, report = examine(tmp_path)
    assert (code, finding(report, "database")["ok"]) == (1, False)
    assert "is damaged" in finding(report, "database")["detail"]
    assert "restore a backup" in finding(report, "database")["remedy"]


def test_without_json_a_finding_is_a_line(tmp_path: Path) -> None:
    process = run(tmp_path)
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith("ok      version: Reflexio")
