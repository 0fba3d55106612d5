"""`reflexio skills`: approved agent playbooks as folders with a `SKILL.md`, and such folders as pending playbooks."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reflexio.cli.exit_codes import FAILED, fail
from reflexio.cli.options import AgentVersion, AsJson, Url, connect
from reflexio.cli.output import PAGE, counted, pages, print_json
from reflexio.cli.terminal import echo

if TYPE_CHECKING:
    from reflexio.client.sync import ReflexioClient
    from reflexio.models.playbook import AgentPlaybook, GetAgentPlaybooksResponse
    from reflexio.transfer.skills import Skill

app = typer.Typer(help="Approved playbooks as SKILL.md folders, and back in.", no_args_is_help=True)
Folder = Annotated[Path, typer.Argument(help="The folder with one folder for each skill, such as .claude/skills.")]
MOST_ADDED = 500
LARGEST_FILE = 2**20


@app.command("export", epilog="Example: reflexio skills export .claude/skills --agent-version v2")
def export(folder: Folder, agent_version: AgentVersion = None, as_json: AsJson = False, url: Url = "") -> None:
    """Write one skill for each agent version and playbook type: what people approved, as coding agents read it.

    A skill that was written before is replaced; another skill of the same name is never touched.
    """
    from reflexio.transfer.skills import FILE, VERSION_KEY, skills_of

    with connect(url) as client:
        conditions = {"agent_version": agent_version, "playbook_status_filter": ["approved"]}
        skills = list(skills_of(_playbooks(client, conditions)))
    for skill in skills:
        file = folder / skill.name / FILE
        if file.exists() and VERSION_KEY not in file.read_text(encoding="utf-8", errors="replace")[:4096]:
            fail(f"{file} was not written by Reflexio: move it away, or choose another folder.")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(skill.text(), encoding="utf-8")
    written = [{"name": skill.name, "playbooks": len(skill.playbooks)} for skill in skills]
    if as_json:
        print_json({"skills": written})
        return
    for entry in written:
        echo(f"{folder / str(entry['name'])}: {counted(int(str(entry['playbooks'])), 'playbook')}")
    if not written:
        echo("No agent playbook is approved yet; `reflexio review` shows what waits.", err=True)


@app.command("import", epilog="Example: reflexio skills import .claude/skills --agent-version v2")
def import_(
    folder: Folder,
    agent_version: Annotated[
        str, typer.Option("--agent-version", help="The agent version of skills that name none.")
    ] = "agent-v0",
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Add the playbooks of skills as pending ones: no prompt has them before a person approves them.

    A skill that was not written by Reflexio becomes one playbook: its description says when, its text what to do. What
    is there already in the same words, whatever was decided about it, is not added again.
    """
    skills, problems = _read(folder)
    added = present = 0
    with connect(url) as client:
        for skill in skills:
            new, known = _add(client, skill, agent_version)
            added, present = added + new, present + known
    if as_json:
        print_json({"added": added, "present": present, "refused": problems})
    else:
        refused = counted(len(problems), "skill")
        echo(f"{counted(added, 'playbook')} added as pending, {present} present, {refused} refused")
        for problem in problems:
            echo(f"note: {problem}", err=True)
        if added:
            echo("`reflexio review` shows them and asks for your decision.", err=True)
    if problems:
        raise typer.Exit(FAILED)


def _read(folder: Path) -> "tuple[list[Skill], list[str]]":
    """The skills of a folder, or the one that it is itself, and why some cannot be read."""
    from reflexio.transfer.skills import FILE, read_skill

    files = [folder / FILE] if (folder / FILE).is_file() else sorted(folder.glob(f"*/{FILE}"))
    if not files:
        fail(f"There is no {FILE} in {folder} or a folder in it.")
    skills, problems = [], []
    for file in files:
        try:
            if file.stat().st_size > LARGEST_FILE:
                raise ValueError("it is larger than 1 MB")
            skills.append(read_skill(file.read_text(encoding="utf-8"), file.parent.name))
        except ValueError as error:  # also of a file that is no UTF-8
            problems.append(f"{file}: {error}")
    return skills, problems


def _add(client: "ReflexioClient", skill: "Skill", agent_version: str) -> tuple[int, int]:
    """How many playbooks of a skill are new, and how many are there already."""
    from reflexio.transfer.skills import wording

    version = skill.agent_version or agent_version
    statuses = ["current", "pending", "archived", "merged", "superseded"]
    known = {wording(row) for row in _playbooks(client, {"agent_version": version, "status_filter": statuses})}
    new = list({wording(each): each for each in skill.playbooks if wording(each) not in known}.values())
    rows: list[dict[str, Any]] = [
        {
            "agent_version": version,
            "playbook_name": skill.playbook_name or "playbook",
            "trigger": each.trigger or None,
            "content": each.content,
            "rationale": each.rationale or None,
            "scope": each.scope,
            "source": "skill",
        }
        for each in new
    ]
    for start in range(0, len(rows), MOST_ADDED):
        client.add_agent_playbooks(rows[start : start + MOST_ADDED])
    return len(new), len(skill.playbooks) - len(new)


def _playbooks(client: "ReflexioClient", conditions: dict[str, Any]) -> "list[AgentPlaybook]":
    def page(count: int, cursor: str | None) -> "tuple[list[AgentPlaybook], GetAgentPlaybooksResponse]":
        response = client.get_agent_playbooks(force_refresh=True, limit=min(count, PAGE), cursor=cursor, **conditions)
        return response.agent_playbooks, response

    return pages(page, None)[0]
