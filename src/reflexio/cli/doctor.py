"""`reflexio doctor`: what is in order, what is not, and what to do about it."""

import asyncio
import json
import os
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING

import typer

from reflexio.cli.exit_codes import FAILED
from reflexio.cli.local import Data, read_settings
from reflexio.cli.options import AsJson, Url
from reflexio.cli.output import WIDEST
from reflexio.cli.terminal import echo, visible

if TYPE_CHECKING:
    from reflexio.doctor import Finding
    from reflexio.settings import Settings

INDENT = 8
"""Columns of the mark in front of a finding."""


def doctor(data: Data = None, as_json: AsJson = False, url: Url = "") -> None:
    """Examine the installation on this machine, one finding a line, each with what to do. It shows no secrets.

    It looks at versions, disk, memory, clock, database, embedder, models, learning, the embedding backlog, reviews that
    wait, and playbooks that say the same, contradict, or are never used. Each configured model and the embedder get one
    tiny question; it shows their time, their tokens and how structured output was reached. The exit code is 1 when
    something must be done. As JSON: `ok`, and `findings` with `part`, `ok`, `detail` and `remedy`.
    """
    findings = asyncio.run(_all_findings(read_settings(data), url, is_shown=not as_json))
    is_ok = all(finding.is_ok for finding in findings)
    if as_json:
        echo(json.dumps({"ok": is_ok, "findings": [_as_json(finding) for finding in findings]}, indent=2))
    if not is_ok:
        raise typer.Exit(FAILED)


async def _all_findings(settings: "Settings", url: str, *, is_shown: bool) -> "list[Finding]":
    from reflexio.doctor import examine

    findings = []
    async for finding in examine(settings, url):
        findings.append(finding)
        if is_shown:
            _print(finding)
    return findings


def _print(finding: "Finding") -> None:
    mark = "ok    " if finding.is_ok else "BROKEN"
    colour = typer.colors.GREEN if finding.is_ok else typer.colors.RED
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        mark = typer.style(mark, fg=colour)
    for text in (f"{finding.part}: {finding.detail}", f"→ {finding.remedy}" if finding.remedy else ""):
        if text:
            typer.echo(f"{mark}  {_wrapped(text)}")
        mark = " " * len("BROKEN")


def _wrapped(text: str) -> str:
    """The text behind the mark: in a terminal it breaks between words, in a pipe it is one line."""
    text = " ".join(visible(text).split())
    if not sys.stdout.isatty():
        return text
    width = max(40, min(WIDEST, shutil.get_terminal_size().columns) - INDENT)
    return ("\n" + " " * INDENT).join(textwrap.wrap(text, width, break_on_hyphens=False))


def _as_json(finding: "Finding") -> dict[str, object]:
    return {"part": finding.part, "ok": finding.is_ok, "detail": finding.detail, "remedy": finding.remedy}
