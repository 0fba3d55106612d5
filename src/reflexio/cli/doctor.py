"""`reflexio doctor`: what is in order, what is not, and what to do about it."""

import asyncio
import json
from typing import TYPE_CHECKING

import typer

from reflexio.cli.exit_codes import FAILED
from reflexio.cli.local import Data, read_settings
from reflexio.cli.options import AsJson
from reflexio.cli.terminal import echo

if TYPE_CHECKING:
    from reflexio.doctor import Finding
    from reflexio.settings import Settings


def doctor(data: Data = None, as_json: AsJson = False) -> None:
    """Examine database, embedder, models and learning. Exit code 1 when something is broken."""
    findings = asyncio.run(_all_findings(read_settings(data), is_shown=not as_json))
    is_ok = all(finding.is_ok for finding in findings)
    if as_json:
        echo(json.dumps({"ok": is_ok, "findings": [_as_json(finding) for finding in findings]}, indent=2))
    if not is_ok:
        raise typer.Exit(FAILED)


async def _all_findings(settings: "Settings", *, is_shown: bool) -> "list[Finding]":
    from reflexio.doctor import examine

    findings = []
    async for finding in examine(settings):
        findings.append(finding)
        if is_shown:
            echo(_line(finding))
    return findings


def _line(finding: "Finding") -> str:
    line = f"{'ok    ' if finding.is_ok else 'BROKEN'}  {finding.part}: {finding.detail}"
    return f"{line}\n        → {finding.remedy}" if finding.remedy else line


def _as_json(finding: "Finding") -> dict[str, object]:
    return {"part": finding.part, "ok": finding.is_ok, "detail": finding.detail, "remedy": finding.remedy}
