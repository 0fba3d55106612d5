"""Files of ours are for their owner alone, new ones and those that exist."""

import logging
import os
from pathlib import Path

import pytest

from reflexio.engine.process_lock import ProcessLock
from reflexio.storage.private_files import make_private
from reflexio.storage.sqlite import open_sqlite


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture(autouse=True)
def _generous_umask() -> object:
    before = os.umask(0)
    yield
    os.umask(before)


async def test_what_is_created_is_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    database = open_sqlite(folder / "reflexio.db")
    await database.ping()
    with ProcessLock(folder / "work.lock"):
        assert mode(folder) == 0o700
        modes = {file.name: mode(file) for file in folder.iterdir()}
        assert {"reflexio.db", "reflexio.db-wal", "reflexio.db-shm", "work.lock"} <= modes.keys()
        assert set(modes.values()) == {0o600}
    await database.close()


def test_what_exists_is_corrected(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    make_private(folder / "reflexio.db")
    (folder / "work.lock").touch()
    for path in (folder, *folder.iterdir()):
        path.chmod(0o777)
    make_private(folder / "reflexio.db")
    assert (mode(folder), mode(folder / "reflexio.db"), mode(folder / "work.lock")) == (0o700, 0o600, 0o600)


def test_a_folder_for_other_things_is_not_changed_but_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o755)
    other = tmp_path / "letter.txt"
    other.touch(0o644)
    with caplog.at_level(logging.WARNING, "reflexio"):
        make_private(tmp_path / "reflexio.db")
    assert (mode(tmp_path), mode(other), mode(tmp_path / "reflexio.db")) == (0o755, 0o644, 0o600)
    assert "chmod 700" in caplog.text
