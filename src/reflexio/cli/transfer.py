"""`reflexio export` and `reflexio import`: all rows of an organisation in one file."""

import gzip
import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from reflexio.cli.exit_codes import FAILED, WRONG_COMMAND, fail
from reflexio.cli.options import AsJson, Url, connect
from reflexio.cli.output import counted, print_fields, print_json, progress
from reflexio.cli.terminal import echo

if TYPE_CHECKING:
    from reflexio.models.transfer import ImportReport

SYSTEMS = ("reflexio", "mem0", "zep")
PRIVATE = 0o600
"""An export holds conversations: nobody else on this machine reads it."""


def export(
    file: Annotated[str, typer.Argument(help="The file to write; - for standard output, .gz to compress it.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    url: Url = "",
) -> None:
    """Write all that the organisation has stored into one file: conversations, learnings, history, settings.

    It has no secrets, keys, vectors, usage or jobs. The server goes on meanwhile. Needs a key with the scope admin.
    """
    if file == "-":
        _export(sys.stdout, url)
        return
    path = Path(file)
    if path.exists() and not force:
        fail(f"{file} exists; --force replaces it.")
    part = path.with_name(f"{path.name}.part")
    try:
        with _private(part, is_compressed=path.suffix == ".gz") as stream:
            words = _export(stream, url)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    echo(f"{file} has {words}.", err=True)


def import_(
    file: Annotated[str, typer.Argument(help="A file of `reflexio export`, mem0 or Zep; - for standard input.")],
    system: Annotated[
        str | None, typer.Option("--from", help="Whose export it is: reflexio, mem0 or zep; by default it is seen.")
    ] = None,
    user: Annotated[str | None, typer.Option("--user", help="Of mem0 or Zep: the user of what names none.")] = None,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Store what an export holds in the organisation of your key, which may have rows already.

    What is there stays as it is and is counted as present, so an import can be repeated, and continued when it was
    interrupted. Memories of mem0 and facts of Zep become profiles; messages of Zep become conversations, from which the
    server learns. Needs a key with the scope admin.
    """
    if system not in (None, *SYSTEMS):
        fail(f"There is no {system!r} to import from: it is {', '.join(SYSTEMS)}.", WRONG_COMMAND)
    if file == "-":
        report = _import(_rows(sys.stdin.buffer, system, user), url)
    else:
        with Path(file).open("rb") as raw, _decompressed(raw) as stream:
            report = _import(_rows(stream, system, user), url)
    if as_json:
        print_json(report)
    else:
        _print(report)
    if not report.is_complete:
        fail("The file ends before its last line: what it has is stored, the rest is missing. Export it again.")
    if any(count.refused for count in report.counts.values()):
        raise typer.Exit(FAILED)


def _rows(stream: Iterable[bytes], system: str | None, user: str | None) -> Iterable[str | bytes]:
    """The lines of an export of ours: as they are, or made of what another system exported."""
    lines = iter(stream)
    first = next(lines, b"")
    if system == "reflexio" or (system is None and b'"header"' in first[:200]):
        return chain([first], lines)
    return _translated((first + b"".join(lines)).decode("utf-8-sig", errors="replace"), system, user or "")


def _translated(text: str, system: str | None, user: str) -> Iterable[str]:
    from reflexio.transfer import mem0, zep
    from reflexio.transfer.foreign import read_document

    document = read_document(text)
    if system == "mem0" or (system is None and mem0.is_mem0(document)):
        result = mem0.translate(document, user)
    elif system == "zep" or (system is None and zep.is_zep(document)):
        result = zep.translate(document, user)
    else:
        fail("This is no export of Reflexio, mem0 or Zep that is known; --from says whose it is.")
    for reason, count in result.skipped.items():
        echo(f"note: left out {count} {reason}", err=True)
    return result.lines()


@contextmanager
def _private(path: Path, *, is_compressed: bool) -> Iterator[IO[str]]:
    """Opens a new file for its owner alone; it is on disk when it is closed."""
    descriptor = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0), PRIVATE)
    with open(descriptor, "wb") as raw:
        with _text(raw, is_compressed=is_compressed) as stream:
            yield stream
        os.fsync(descriptor)


@contextmanager
def _text(raw: IO[bytes], *, is_compressed: bool) -> Iterator[IO[str]]:
    """Text as UTF-8 bytes of a file, which stays open."""
    packed = gzip.GzipFile(fileobj=raw, mode="wb") if is_compressed else None
    stream = io.TextIOWrapper(packed or raw, encoding="utf-8", newline="\n")
    yield stream
    stream.flush()
    stream.detach()
    if packed is not None:
        packed.close()


@contextmanager
def _decompressed(raw: IO[bytes]) -> Iterator[Iterable[bytes]]:
    """The lines of a file, also of a compressed one, whatever its name."""
    is_compressed = raw.read(2) == b"\x1f\x8b"
    raw.seek(0)
    if not is_compressed:
        yield raw
        return
    with gzip.open(raw, "rb") as stream:
        yield stream


def _export(stream: IO[str], url: str) -> str:
    """Writes the lines; returns what they were."""
    import json

    counts: dict[str, int] = {}
    done = total = 0
    with connect(url) as client, progress("Exporting") as show:
        for number, line in enumerate(client.export_organisation()):
            stream.write(line)
            if number == 0:
                counts = json.loads(line)["counts"]
                total = counts.get("learnings", 0) + counts.get("requests", 0)
            is_row = line.startswith(('{"type":"learning"', '{"type":"request"'))
            done += is_row
            if is_row:
                show(done, max(done, total), f"{done} of {max(done, total)}")
        counts = json.loads(line)["counts"]
    words = [counted(counts["learnings"], "learning"), counted(counts["requests"], "publish", "publishes")]
    return f"{words[0]} and {words[1]} with {counted(counts['turns'], 'turn')}"


def _import(stream: Iterable[str | bytes], url: str) -> "ImportReport":
    with connect(url) as client, progress("Importing") as show:

        def on_progress(report: "ImportReport") -> None:
            done = sum(count.added + count.present + count.refused for count in report.counts.values())
            show(done, None, counted(done, "row"))

        return client.import_organisation(stream, on_progress=on_progress)


def _print(report: "ImportReport") -> None:
    print_fields(
        (part, f"{count.added} added, {count.present} present, {count.refused} refused")
        for part, count in report.counts.items()
    )
    for note in report.notes:
        echo(f"note: {note}", err=True)
