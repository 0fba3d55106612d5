"""What Reflexio stands on: disk, memory, clock, and the versions of the programs that work together."""

import shutil
import sqlite3
import sys
from collections.abc import AsyncIterator, Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx

import reflexio
from reflexio.client.endpoint import Endpoint
from reflexio.doctor.finding import Finding, age
from reflexio.errors import ReflexioError
from reflexio.models.paging import Page
from reflexio.ports.storage import Database, RequestFilter, Tx

GIGABYTE = 2**30
LEAST_DISK = GIGABYTE
LEAST_MEMORY = 256 * 2**20
LARGEST_SKEW = 300
"""Seconds that two clocks may differ, or that a row may be from the future."""
FIRST_SECOND = 1_767_225_600
"""The beginning of 2026: a clock before it was never set."""
SECONDS = 5.0


def examine_versions() -> Finding:
    """This Reflexio, and what it runs on."""
    python = ".".join(map(str, sys.version_info[:3]))
    return Finding(
        "version", True, f"Reflexio {reflexio.__version__}, Python {python}, SQLite {sqlite3.sqlite_version}"
    )


def examine_disk(folder: Path) -> Finding:
    """Whether there is room for the database to grow: as much again as it has, and a gigabyte at least."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    size = sum(file.stat().st_size for file in folder.glob("*") if file.is_file()) if folder.exists() else 0
    free = shutil.disk_usage(there).free
    detail = f"{free / GIGABYTE:.1f} GB free; the data folder has {size / 2**20:.0f} MB"
    if free >= max(LEAST_DISK, size):
        return Finding("disk", True, detail)
    return Finding("disk", False, detail, "Free some space: on a full disk nothing more can be published.")


def examine_memory() -> Iterator[Finding]:
    """How much memory is left, where the system tells it."""
    available = _available_memory()
    if available is None:
        return
    detail = f"{available / GIGABYTE:.1f} GB available"
    remedy = (
        "" if available >= LEAST_MEMORY else "Give the machine or the container more memory, or stop something else."
    )
    yield Finding("memory", available >= LEAST_MEMORY, detail, remedy)


def _available_memory() -> int | None:
    """Of the machine or, if that is less, of the container."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        fields = dict(line.split(":", 1) for line in lines)
        available = int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None
    try:
        group = Path("/sys/fs/cgroup")
        most, used = ((group / name).read_text(encoding="ascii").strip() for name in ("memory.max", "memory.current"))
        return min(available, int(most) - int(used)) if most.isdecimal() else available
    except (OSError, ValueError):
        return available


async def examine_clock(database: Database, organisations: list[str], now: int) -> Finding:
    """Whether the clock is set, and was not set back since rows were written."""
    if now < FIRST_SECOND:
        return Finding("clock", False, "The clock was never set.", "Set the time of this machine, such as with NTP.")

    def newest(tx: Tx) -> int:
        rows = tx.requests.page(RequestFilter(), Page(1)).rows
        return rows[0].created_at if rows else 0

    latest = max([await database.of(org_id).read(newest) for org_id in organisations], default=0)
    if latest > now + LARGEST_SKEW:
        detail = f"The newest publish is {age(latest - now)} in the future: the clock is wrong, or it was."
        return Finding("clock", False, detail, "Set the time of this machine; new rows sort below those of the future.")
    return Finding("clock", True, "set, and no row is from the future")


async def examine_server(url: str, now: int) -> AsyncIterator[Finding]:
    """The server that the commands talk to: its version and its clock, compared with those of this program."""
    endpoint = Endpoint.find("", url)
    try:
        async with endpoint.open_client(httpx.AsyncClient, None) as client:
            response = await client.get(f"{endpoint.url}/meta/version", headers=endpoint.headers, timeout=SECONDS)
            version = str(response.raise_for_status().json()["version"])
    except httpx.TransportError:
        yield Finding("server", True, f"none answers at {endpoint.url}", "`reflexio serve` starts one.")
        return
    except (ReflexioError, httpx.HTTPError, ValueError, KeyError, TypeError):
        remedy = "Choose its address with --url or REFLEXIO_URL, or stop the other program."
        yield Finding("server", False, f"What answers at {endpoint.url} is no Reflexio server.", remedy)
        return
    if version == reflexio.__version__:
        yield Finding("server", True, f"{endpoint.url}, Reflexio {version}")
    else:
        detail = f"{endpoint.url} runs Reflexio {version}, this command is {reflexio.__version__}"
        yield Finding("server", False, detail, "Install the same version for both, and restart the server.")
    skew = (
        abs(int(parsedate_to_datetime(response.headers["date"]).timestamp()) - now) if "date" in response.headers else 0
    )
    if skew > LARGEST_SKEW:
        detail = f"The server's clock and this one are {age(skew)} apart."
        yield Finding("clock of the server", False, detail, "Set the time of both machines, such as with NTP.")
