"""What `reflexio doctor` finds in a database: a sound one has no problem, and each kind of damage is named."""

from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from reflexio.app import DATABASE
from reflexio.client.sync import ReflexioClient
from reflexio.storage.integrity import BROKEN_ROWS
from reflexio.storage.sqlite import SqliteDatabase
from tests.builders import eventually, on_database, turns

BREAKING = {
    "turns whose request is missing": "DELETE FROM requests",
    "turns that learning has forgotten": "UPDATE users SET unlearned_since = 0",
    "vectors of missing rows": (
        "INSERT INTO vectors (org_id, kind, row_id, vector) VALUES ('default', 'profile', 999, x'00')"
    ),
    "missing rows that wait for a vector": (
        "INSERT INTO unembedded (org_id, kind, row_id) VALUES ('default', 'interaction', 999)"
    ),
    "results of steps without a job": "INSERT INTO job_answers VALUES ('nobody', 'step', 1, '{}')",
    "candidates without a job": (
        "INSERT INTO optimisation_candidates (org_id, job_id, place) VALUES ('default', 9, 0)"
    ),
    "evaluations without a job": (
        "INSERT INTO optimisation_evaluations (org_id, job_id, place, scene) VALUES ('default', 9, 0, 's')"
    ),
    "events without a job": "INSERT INTO optimisation_events (org_id, job_id, number) VALUES ('default', 9, 0)",
    "words of missing rows (interaction)": "UPDATE interaction_words SET id = 999",
    "words of missing rows (learning)": "UPDATE learning_words SET id = 999",
    "scopes whose statistics are wrong (interaction)": "UPDATE interaction_words_size SET row_count = 7",
    "scopes whose statistics are wrong (learning)": "UPDATE learning_words_size SET row_count = 7",
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a database with a turn that waits and a learning."""
    from reflexio.server.process import running_server

    folder = tmp_path_factory.mktemp("sound")
    with running_server(folder) as url, ReflexioClient(url_endpoint=url) as client:
        client.update_config({"stride_size": 50, "window_size": 100})
        client.publish_interaction("ann", turns("Where is my parcel?"))
        client.add_user_profile([{"user_id": "ann", "content": "Likes tea"}])
        client.search("parcel", user_id="ann")
        eventually(lambda: "turns_indexed_total 1" in httpx.get(f"{url}/metrics").text)
    on_database(folder, lambda database: database.wipe())
    return (folder / DATABASE).read_bytes()


@pytest.fixture
def folder(tmp_path: Path, sound: bytes) -> Path:
    (tmp_path / DATABASE).write_bytes(sound)
    return tmp_path


def problems(folder: Path, statement: str = "") -> list[str]:
    async def act(database: SqliteDatabase) -> list[str]:
        if statement:
            await database.write(lambda connection: connection.execute(text(statement)))
        return await database.problems()

    return on_database(folder, act)


def test_a_sound_database_has_no_problem(folder: Path) -> None:
    assert problems(folder) == []


@pytest.mark.parametrize("problem", BREAKING)
def test_each_broken_invariant_is_named(folder: Path, problem: str) -> None:
    found = problems(folder, BREAKING[problem])
    assert any(each.endswith(problem) for each in found), found


def test_every_invariant_is_tried() -> None:
    assert set(BREAKING) == set(BROKEN_ROWS)
