"""`reflexio backup` and `reflexio restore` on real folders, beside a running server and without one."""

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from reflexio.app import DATABASE
from reflexio.cli.app import app
from reflexio.client.sync import ReflexioClient
from reflexio.errors import Conflict, NotFound, StorageCorrupt, StorageNewer, StorageTaken
from reflexio.server.process import ServerProcess

pytestmark = pytest.mark.slow


def command(*words: object) -> str:
    done = CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@contextmanager
def serving(folder: Path) -> Iterator[ReflexioClient]:
    server = ServerProcess(folder)
    server.start()
    try:
        with ReflexioClient(url_endpoint=server.url, retries=0) as client:
            yield client
    finally:
        server.stop()


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A backup of two users, the database of which one was erased later, and the receipt of that."""
    folder = tmp_path_factory.mktemp("sample")
    data, backup, receipt = folder / "data", folder / "backup.db", folder / "receipt.json"
    with serving(data) as client:
        for user in ("ann", "bob"):
            client.publish_interaction(user, [{"content": "I am allergic to nuts."}], wait_for_response=True)
        stop = threading.Event()
        published = []

        def publish() -> None:
            while not stop.is_set():
                published.append(client.publish_interaction("cem", [{"content": "Hello"}]))

        writer = threading.Thread(target=publish)
        writer.start()
        try:
            command("backup", backup, "--data", data)
        finally:
            stop.set()
            writer.join()
        receipt.write_text(client.clear_user_data("ann").model_dump_json())
    return {"data": data, "backup": backup, "receipt": receipt, "published": len(published)}


def users_of(folder: Path) -> set[str]:
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        return {user for (user,) in connection.execute("SELECT DISTINCT user_id FROM learnings WHERE user_id <> ''")}


def replaced(sample: dict[str, Any], tmp_path: Path) -> Path:
    """A copy of the folder in which one user was erased after the backup."""
    data = tmp_path / "data"
    data.mkdir()
    (data / DATABASE).write_bytes((sample["data"] / DATABASE).read_bytes())
    return data


def test_a_copy_made_while_others_write_is_whole_and_private(sample: dict[str, Any]) -> None:
    backup = sample["backup"]
    assert sample["published"] > 0
    assert backup.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in backup.parent.iterdir() if "backup" in path.name] == ["backup.db"]
    with closing(sqlite3.connect(backup)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        turns = "SELECT count(*) FROM interactions i LEFT JOIN requests r USING (org_id, request_id) WHERE r.id IS NULL"
        assert connection.execute(turns).fetchone() == (0,)


def test_a_restored_folder_serves_what_the_backup_has(sample: dict[str, Any], tmp_path: Path) -> None:
    data = tmp_path / "new"
    assert "2 learnings" in command("restore", sample["backup"], "--data", data)
    assert data.stat().st_mode & 0o777 == 0o700
    assert (data / DATABASE).stat().st_mode & 0o777 == 0o600
    with serving(data) as client:
        assert client.get_profiles("ann").user_profiles
        assert client.search("nuts", user_id="bob").profiles


def test_nothing_is_overwritten_by_mistake(sample: dict[str, Any], tmp_path: Path) -> None:
    data = replaced(sample, tmp_path)
    for words in (("backup", sample["backup"], "--data", data), ("restore", sample["backup"], "--data", data)):
        with pytest.raises(Conflict, match=r"exists|--replace"):
            command(*words)
    assert users_of(data) == {"bob"}


def test_a_running_server_keeps_its_data(sample: dict[str, Any], tmp_path: Path) -> None:
    data = tmp_path / "data"
    options = ("--data", data, "--replace", "--without-receipts")
    with serving(data) as client:
        client.add_user_profile([{"user_id": "eve", "content": "Is here."}])
        with pytest.raises(StorageTaken):
            command("restore", sample["backup"], *options)
        assert client.get_profiles("eve").user_profiles
    # A program that only has the file open, such as a second server that does not learn, is noticed too.
    with closing(sqlite3.connect(data / DATABASE)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("SELECT count(*) FROM users").fetchone()
        with pytest.raises(StorageTaken):
            command("restore", sample["backup"], *options)
    assert users_of(data) == {"eve"}
    command("restore", sample["backup"], *options)
    assert users_of(data) == {"ann", "bob"}


def test_users_who_were_erased_since_do_not_come_back(sample: dict[str, Any], tmp_path: Path) -> None:
    data = replaced(sample, tmp_path)
    with pytest.raises(Conflict, match="1 user"):
        command("restore", sample["backup"], "--data", data, "--replace")
    assert users_of(data) == {"bob"}
    receipts = tmp_path / "receipts"
    receipts.mkdir()
    (receipts / "ann.json").write_text(sample["receipt"].read_text())
    said = command("restore", sample["backup"], "--data", data, "--replace", "--receipt", receipts)
    assert "Erased 1 user again" in said
    assert users_of(data) == {"bob"}
    assert "the receipt fits" in command("erasure", "verify", "ann", "--receipt", sample["receipt"], "--data", data)


def test_without_receipts_they_do_when_that_is_chosen(sample: dict[str, Any], tmp_path: Path) -> None:
    data = replaced(sample, tmp_path)
    options = ("--data", data, "--replace", "--without-receipts", "--json")
    report = json.loads(command("restore", sample["backup"], *options))
    assert (report["erased_again"], report["forgotten_erasures"]) == (0, 1)
    assert users_of(data) == {"ann", "bob"}


def test_a_damaged_database_is_replaced(sample: dict[str, Any], tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / DATABASE).write_bytes(b"not a database at all" * 500)
    command("restore", sample["backup"], "--data", data, "--replace")
    assert users_of(data) == {"ann", "bob"}


def test_what_is_no_sound_backup_is_refused_and_changes_nothing(sample: dict[str, Any], tmp_path: Path) -> None:
    data, content = replaced(sample, tmp_path), sample["backup"].read_bytes()
    middle = len(content) // 2
    bad = {
        "text.db": (b"hello", StorageCorrupt),
        "empty.db": (b"", StorageCorrupt),
        "cut.db": (content[:middle], StorageCorrupt),
        "torn.db": (content[: middle // 4096 * 4096] + b"\xff" * 20_000 + content[middle + 20_000 :], StorageCorrupt),
    }
    for name, (damaged, expected) in bad.items():
        file = tmp_path / name
        file.write_bytes(damaged)
        with pytest.raises(expected):
            command("restore", file, "--data", data, "--replace", "--without-receipts")
    newer = tmp_path / "newer.db"
    newer.write_bytes(content)
    with closing(sqlite3.connect(newer)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    with pytest.raises(StorageNewer):
        command("restore", newer, "--data", data, "--replace")
    with pytest.raises(NotFound):
        command("restore", tmp_path / "nowhere.db", "--data", data, "--replace")
    assert users_of(data) == {"bob"}


def test_a_folder_without_a_database_has_nothing_to_copy(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        command("backup", tmp_path / "backup.db", "--data", tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []
