"""Asks the package index for known holes in the pinned dependencies, and lists the licences of what is installed.

    python -m scripts.audit

The index is the one that pip uses. Where it cannot be asked, one line says so and nothing fails. Exit code 1 means that
a pinned version has a known hole, or that a licence does not fit.
"""

import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

import httpx
from pip._internal.models.index import PyPI  # where pip looks when nothing is configured

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"
SECONDS = 20.0
CALLS_AT_ONCE = 8
COPYLEFT = re.compile(r"\b(A?GPL|General Public License|SSPL)\b", re.IGNORECASE)
WEAK_COPYLEFT = re.compile(r"LGPL|(Lesser|Library) General Public License", re.IGNORECASE)
UNKNOWN = "unknown"


class IndexSilent(Exception):
    """The index has no answer to the question about holes."""


@dataclass(frozen=True)
class Hole:
    package: str
    version: str
    name: str
    summary: str
    fixed_in: tuple[str, ...]

    def __str__(self) -> str:
        remedy = f"fixed in {', '.join(self.fixed_in)}" if self.fixed_in else "no fixed version yet"
        return f"{self.package} {self.version}: {self.name}, {remedy}. {self.summary}".rstrip()


def pinned(text: str) -> list[tuple[str, str]]:
    """The names and versions of a file of constraints."""
    lines = (line.partition("#")[0].partition(";")[0].strip() for line in text.splitlines())
    pins = (line.partition("==") for line in lines)
    return [(name.strip(), version.strip()) for name, sign, version in pins if sign]


def read_holes(package: str, version: str, document: Mapping[str, Any]) -> list[Hole]:
    """The holes that the index names for one version. Raises IndexSilent when it knows nothing about holes."""
    entries = document.get("vulnerabilities")
    if not isinstance(entries, list):
        raise IndexSilent(f"its answer about {package} names no holes, and does not say that there are none")
    return [
        Hole(
            package,
            version,
            " ".join([str(entry.get("id", "")), *map(str, entry.get("aliases") or ())]).strip(),
            " ".join(str(entry.get("summary") or "").split())[:200],
            tuple(map(str, entry.get("fixed_in") or ())),
        )
        for entry in entries
        if not entry.get("withdrawn")
    ]


def index_address() -> str:
    """Where pip's index describes packages as JSON."""
    configured = os.environ.get("PIP_INDEX_URL") or _pip_setting("global.index-url")
    if configured:
        return re.sub(r"/simple/?$", "", configured.rstrip("/")) + "/pypi"
    return PyPI.pypi_url


def _pip_setting(name: str) -> str:
    command = [sys.executable, "-m", "pip", "config", "get", name]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def find_holes(
    pins: Iterable[tuple[str, str]], address: str, client: httpx.Client
) -> tuple[list[Hole], list[tuple[str, str]]]:
    """The known holes of all pins, and the pins about which the index had no answer. Raises IndexSilent when it has
    none about the first."""

    def ask(pin: tuple[str, str]) -> list[Hole]:
        name, version = pin
        try:
            response = client.get(f"{address}/{name}/{version}/json")
            if response.status_code != httpx.codes.OK:
                raise IndexSilent(f"HTTP {response.status_code} about {name} {version}")
            document = response.json()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise IndexSilent(type(error).__name__) from error
        return read_holes(name, version, document if isinstance(document, dict) else {})

    def ask_or_none(pin: tuple[str, str]) -> list[Hole] | None:
        try:
            return ask(pin)
        except IndexSilent:
            return None

    first, *rest = pins
    found = ask(first)  # alone: where the index is out of reach, one attempt is enough
    with ThreadPoolExecutor(CALLS_AT_ONCE) as threads:
        answers = list(threads.map(ask_or_none, rest))
    unanswered = [pin for pin, holes in zip(rest, answers, strict=True) if holes is None]
    return found + [hole for holes in answers for hole in holes or ()], unanswered


def _first(distribution: Distribution, field: str) -> str:
    return next(iter(distribution.metadata.get_all(field) or ()), "")


def licence(distribution: Distribution) -> str:
    """The licence in its own words, in one short line."""
    said = _first(distribution, "License-Expression")
    classified = [
        line.rpartition("::")[2].strip()
        for line in distribution.metadata.get_all("Classifier") or ()
        if "License" in line
    ]
    words = said or ", ".join(sorted(set(classified))) or _first(distribution, "License").strip().partition("\n")[0]
    return words[:60] or UNKNOWN


def fits(words: str) -> bool:
    """Whether a licence lets us use the package from code of ours. A choice with another licence fits."""
    return not COPYLEFT.search(WEAK_COPYLEFT.sub("", words)) or " or " in words.lower()


def check_holes() -> bool:
    pins = pinned(CONSTRAINTS.read_text())
    try:
        with httpx.Client(timeout=SECONDS, follow_redirects=True) as client:
            holes, unanswered = find_holes(pins, index_address(), client)
    except IndexSilent as error:
        print(f"holes     not checked: the package index cannot be asked here ({error})")
        return True
    for hole in holes:
        print(f"HOLE      {hole}")
    for name, version in unanswered:
        print(f"unknown   the index has no answer about {name} {version}")
    print(f"holes     {len(holes)} known in {len(pins) - len(unanswered)} pinned packages")
    return not holes


def check_licences() -> bool:
    names = defaultdict(list)
    for distribution in distributions():
        names[licence(distribution)].append(distribution.metadata["Name"])
    for words, packages in sorted(names.items(), key=lambda item: -len(item[1])):
        shown = ", ".join(sorted(set(packages), key=str.lower)) if len(packages) <= 3 or not fits(words) else ""
        print(f"{'licence ' if fits(words) else 'LICENCE '}  {len(packages):3} {words}{f': {shown}' if shown else ''}")
    return all(map(fits, names))


def main() -> None:
    results = [check_holes(), check_licences()]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
