"""Restores a backup without bringing back users who were erased after it was made.

A backup still has them. Their erasures are in the database that is replaced, as digests that name nobody; the receipts,
which only those have who asked for the erasures, tell which users they were.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from reflexio.aggregation.withdraw import withdraw_user
from reflexio.app import DATABASE, LOCK, open_database
from reflexio.engine.process_lock import ProcessLock
from reflexio.errors import Conflict, InvalidRequest, StorageCorrupt
from reflexio.interactions.erase import delete_user
from reflexio.models.interaction import ErasureReceipt
from reflexio.ports.clock import SystemClock
from reflexio.ports.storage import Tx
from reflexio.settings import Settings
from reflexio.storage import backup as copies
from reflexio.storage.backup import BackupContents, OnProgress

OldUser = tuple[str, str, ErasureReceipt]
"""An organisation, a user of the backup who was erased since, and the receipt."""


@dataclass(frozen=True)
class Restored:
    """What the backup had, how many users were erased again, and how many newer erasures had no receipt."""

    contents: BackupContents
    erased_again: int = 0
    forgotten_erasures: int = 0


async def back_up(settings: Settings, target: Path, on_progress: OnProgress) -> BackupContents:
    """Writes a checked copy of the database, also while a server uses it."""
    _check_is_embedded(settings)
    return await asyncio.to_thread(copies.back_up, settings.data / DATABASE, target, on_progress)


async def restore(
    settings: Settings,
    backup: Path,
    receipts: Sequence[ErasureReceipt],
    on_progress: OnProgress,
    *,
    replace: bool,
    without_receipts: bool,
) -> Restored:
    """Puts the backup into the data folder and erases the users of the receipts again. No server may run on it."""
    _check_is_embedded(settings)
    contents = await asyncio.to_thread(copies.check_backup, backup)
    path = settings.data / DATABASE
    if path.exists() and not replace:
        raise Conflict(f"There is a database in {settings.data}; --replace puts the backup in its place.")
    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    with ProcessLock(settings.data / LOCK):
        newer = _newer_erasures(path, backup)
        uncovered = newer - {receipt.digest for receipt in receipts}
        if uncovered and not without_receipts:
            raise Conflict(
                f"{len(uncovered)} user(s) were erased after this backup was made, and would be back. Give their "
                "receipts with --receipt, so that they are erased again; or --without-receipts to bring them back."
            )
        erased = _find_users(backup, receipts)
        await asyncio.to_thread(copies.restore, backup, path, on_progress)
        await _erase_again(settings, erased)
    return Restored(contents, len(erased), len(uncovered))


def _check_is_embedded(settings: Settings) -> None:
    if settings.database:
        raise InvalidRequest("Backups are of the embedded database; copy PostgreSQL with pg_dump and pg_restore.")


def _newer_erasures(path: Path, backup: Path) -> set[str]:
    """The digests of erasures that the present database knows of and the backup does not."""
    if not path.exists() or not path.stat().st_size:
        return set()
    try:
        known = copies.erasures_of(path)
    except StorageCorrupt:  # a damaged database tells nothing, and is why one restores
        return set()
    return {digest for _, digest in known - copies.erasures_of(backup)}


def _find_users(backup: Path, receipts: Sequence[ErasureReceipt]) -> list[OldUser]:
    """The users of the backup to whom a receipt belongs."""
    if not receipts:
        return []
    users = copies.users_of(backup)
    return [(org, user, receipt) for org, user in users for receipt in receipts if receipt.fits(org, user)]


async def _erase_again(settings: Settings, erased: Sequence[OldUser]) -> None:
    """Opening the database also brings it to the current schema."""
    database, clock = await open_database(settings), SystemClock()
    try:
        for org, user, receipt in erased:
            store = database.of(org)
            await delete_user(store, clock, user, withdraw_user)
            await store.write(partial(_remember, receipt=receipt))
        await database.wipe()
    finally:
        await database.close()


def _remember(tx: Tx, receipt: ErasureReceipt) -> None:
    """The first receipt stays valid: the user is as erased as it says."""
    if not tx.erasures.has_receipt(receipt.digest):
        tx.erasures.add_receipt(receipt.digest, receipt.erased_at)
