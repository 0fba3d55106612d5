"""`reflexio backup` and `reflexio restore`: copies of the embedded database of this machine."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reflexio.cli.local import Data, read_settings
from reflexio.cli.options import AsJson
from reflexio.cli.output import counted, print_json, progress
from reflexio.cli.terminal import echo

if TYPE_CHECKING:
    from reflexio.models.interaction import ErasureReceipt
    from reflexio.storage.backup import BackupContents


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write; it must not exist.")],
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Copy the database of this machine into one file, also while a server uses it.

    The copy shows one moment, is checked after it was written, and is readable for its owner alone. It holds everything
    of all organisations: conversations, settings with their secrets, and digests of API keys. Users who are erased
    later stay in it: delete it when its time is over, and keep receipts of erasures for `reflexio restore`.
    """
    from reflexio.backup import back_up

    with progress("Copying") as show:
        contents = asyncio.run(
            back_up(read_settings(data), file, lambda done, total: show(done, total, f"{done} of {total} pages"))
        )
    size = file.stat().st_size
    if as_json:
        print_json({"file": str(file), "bytes": size, "schema": contents.revision, "rows": contents.counts})
    else:
        echo(f"{file} has {_described(contents)}, {size / 1e6:.1f} MB. It was read back without a fault.")


def restore(
    file: Annotated[Path, typer.Argument(help="A file of `reflexio backup`.")],
    replace: Annotated[bool, typer.Option("--replace", help="Replace the database that is there.")] = False,
    receipt: Annotated[
        list[Path] | None,
        typer.Option(help="The receipt of an erasure, or a folder of them: its user is erased again."),
    ] = None,
    without_receipts: Annotated[
        bool, typer.Option("--without-receipts", help="Bring back users who were erased after the backup.")
    ] = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Put a backup into the data folder. It is checked first, and nothing is done while a server runs on the folder.

    A backup still has users who were erased later. When the database that it replaces knows of such erasures, their
    receipts are needed to erase these users again; without them it stops, unless you choose otherwise. An older backup
    is brought to the current schema.
    """
    from reflexio.backup import restore as put_back

    receipts = [found for path in receipt or () for found in _receipts(path)]
    with progress("Restoring") as show:
        restored = asyncio.run(
            put_back(
                read_settings(data),
                file,
                receipts,
                lambda done, total: show(done, total, f"{done} of {total} pages"),
                replace=replace,
                without_receipts=without_receipts,
            )
        )
    if as_json:
        counts = {"erased_again": restored.erased_again, "forgotten_erasures": restored.forgotten_erasures}
        print_json({"schema": restored.contents.revision, "rows": restored.contents.counts, **counts})
        return
    echo(f"Restored {_described(restored.contents)}.")
    if restored.erased_again:
        echo(f"Erased {counted(restored.erased_again, 'user')} again.")
    if restored.forgotten_erasures:
        echo(f"{counted(restored.forgotten_erasures, 'erased user')} may be back: erase them again.", err=True)


def _receipts(path: Path) -> "list[ErasureReceipt]":
    from reflexio.cli.erasure import read_receipt

    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    return [read_receipt(file) for file in files]


def _described(contents: "BackupContents") -> str:
    counts = contents.counts
    learnings, turns = counted(counts.get("learnings", 0), "learning"), counted(counts.get("interactions", 0), "turn")
    return f"{learnings} and {turns}, schema {contents.revision}"
