"""Keeps the files of a data folder to their owner: 0600 in a folder of 0700. They hold conversations and keys."""

import logging
import os
import stat
from contextlib import suppress
from pathlib import Path

log = logging.getLogger("reflexio")

OTHERS = stat.S_IRWXG | stat.S_IRWXO
OURS = ("reflexio.db", "work.lock")
"""What the names of our files begin with: SQLite adds `-wal`, `-shm` and `-journal`."""


def make_private(path: Path) -> None:
    """Creates `path` and its folder for their owner alone, and corrects those that exist.

    A folder that holds anything else stays as it is, with a warning: others may need it. Raises OSError.
    """
    folder = path.parent
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
    elif _is_open(folder):
        if all(_is_ours(entry) for entry in folder.iterdir()):
            folder.chmod(0o700)
        else:
            log.warning("other users may enter the data folder %s, which holds other files too; chmod 700 it", folder)
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    for file in folder.iterdir():
        with suppress(FileNotFoundError):  # SQLite in another process has just removed it
            if _is_ours(file) and _is_open(file):
                file.chmod(0o600)


def _is_ours(path: Path) -> bool:
    return path.name.startswith(OURS) and path.is_file() and not path.is_symlink()


def _is_open(path: Path) -> bool:
    """Whether others may use what belongs to this user. Windows has no such modes."""
    if os.name == "nt":
        return False
    status = path.stat()
    return bool(status.st_mode & OTHERS) and status.st_uid == os.geteuid()
