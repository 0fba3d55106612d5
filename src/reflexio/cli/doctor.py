"""`reflexio doctor`: what is in order, what is not, and what to do about it."""

import asyncio
import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from reflexio.cli.terminal import echo
from reflexio.doctor import Finding, examine
from reflexio.settings import Settings


def doctor(
    data: Annotated[Path | None, typer.Option(help="Folder of the embedded database (~/.reflexio).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Examine database, embedder, models and learning. Exit code 1 when something is broken."""
    settings = Settings.read()
    settings = dataclasses.replace(settings, data=data) if data else settings
    findings = asyncio.run(_all_findings(settings, is_shown=not as_json))
    is_ok = all(finding.is_ok for finding in findings)
    if as_json:
        echo(json.dumps({"ok": is_ok, "findings": [_as_json(finding) for finding in findings]}, indent=2))
    if not is_ok:
        raise typer.Exit(1)


async def _all_findings(settings: Settings, *, is_shown: bool) -> list[Finding]:
    findings = []
    async for finding in examine(settings):
        findings.append(finding)
        if is_shown:
            echo(_line(finding))
    return findings


def _line(finding: Finding) -> str:
    line = f"{'ok    ' if finding.is_ok else 'BROKEN'}  {finding.part}: {finding.detail}"
    return f"{line}\n        → {finding.remedy}" if finding.remedy else line


def _as_json(finding: Finding) -> dict[str, object]:
    return {"part": finding.part, "ok": finding.is_ok, "detail": finding.detail, "remedy": finding.remedy}
