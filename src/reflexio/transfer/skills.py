"""Approved agent playbooks as skills for coding agents, and skills as agent playbooks: folders with a `SKILL.md` each.

A skill is what agents of one version learned about one type. Its front matter has `name` and `description`, by which an
agent decides to read it; each playbook is a section: a heading that says when it applies, what to do, and why. A skill
that was not written here becomes one playbook: its description is when, its text what to do.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reflexio.models.learning import Scope
from reflexio.models.playbook import AgentPlaybook
from reflexio.models.wording import without_hidden

FILE = "SKILL.md"
LONGEST_NAME, LONGEST_DESCRIPTION = 64, 1024
"""Of the format that agents share."""
VERSION_KEY, TYPE_KEY = "reflexio-agent-version", "reflexio-playbook-name"
WHEN, ANY_TIME, WHY = "## When: ", "## At any time", "*Why:* "
ALWAYS = "<!-- in every prompt -->"
_SPECIAL = re.compile(r"^(\\*)(?=## |<!-- |\*Why:\* )", re.MULTILINE)
_ESCAPED = re.compile(r"^\\(\\*)(?=## |<!-- |\*Why:\* )", re.MULTILINE)
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)(.*)\Z", re.DOTALL)
_SECTION = re.compile(r"^(?:## When: (?P<when>.*)|## At any time)[ \t]*$", re.MULTILINE)
_KEY = re.compile(r"^(?P<indent> *)(?P<key>[A-Za-z][\w-]*):(?:[ \t]+(?P<value>.*?))?[ \t]*$")


@dataclass(frozen=True)
class SkillPlaybook:
    """One playbook of a skill."""

    content: str
    trigger: str = ""
    rationale: str = ""
    scope: Scope | None = None


@dataclass(frozen=True)
class Skill:
    """The playbooks of one agent version and type. Both are empty in a skill that was not written here."""

    name: str
    description: str
    playbooks: tuple[SkillPlaybook, ...]
    agent_version: str = ""
    playbook_name: str = ""

    def text(self) -> str:
        """The content of its `SKILL.md`."""
        head = [
            "---",
            f"name: {self.name}",
            f"description: {json.dumps(self.description, ensure_ascii=False)}",
            "metadata:",
            f"  {VERSION_KEY}: {json.dumps(self.agent_version, ensure_ascii=False)}",
            f"  {TYPE_KEY}: {json.dumps(self.playbook_name, ensure_ascii=False)}",
            "---",
            "",
            f"# {self.name}",
        ]
        return "\n".join([*head, *map(_section, self.playbooks)]) + "\n"


def skills_of(playbooks: Iterable[AgentPlaybook]) -> Iterator[Skill]:
    """The skills of approved playbooks, in the order of their versions and types; each name is used once."""
    groups: dict[tuple[str, str], list[AgentPlaybook]] = defaultdict(list)
    for playbook in playbooks:
        groups[playbook.agent_version, playbook.playbook_name].append(playbook)
    taken: set[str] = set()
    for (agent_version, playbook_name), group in sorted(groups.items()):
        name = _unique(_slug(f"{playbook_name}-{agent_version}"), taken)
        group.sort(key=lambda playbook: (playbook.scope is not Scope.ALWAYS, playbook.agent_playbook_id))
        yield Skill(name, _description(agent_version, group), tuple(map(_of, group)), agent_version, playbook_name)


def read_skill(text: str, folder: str) -> Skill:
    """The skill in a `SKILL.md`. Raises ValueError when it has no front matter with a description, or no text."""
    match = _FRONT.match(text)
    if match is None:
        raise ValueError("it has no front matter between two lines of ---")
    front, body = read_front_matter(match[1]), match[2].replace("\r\n", "\n").strip()
    name, description = front.get("name", "") or folder, front.get("description", "")
    agent_version, playbook_name = front.get(VERSION_KEY, ""), front.get(TYPE_KEY, "")
    if VERSION_KEY in front:
        return Skill(name, description, tuple(_playbooks(body)), agent_version, playbook_name)
    if not description or not body:
        raise ValueError("it needs a description in its front matter, and a text below")
    return Skill(name, description, (SkillPlaybook(body, trigger=description),))


def read_front_matter(text: str) -> dict[str, str]:
    """The texts of a front matter, of all levels: plain, quoted, or in a block after `|` or `>`.

    >>> read_front_matter('name: tidy\\ndescription: >\\n  Tidy up\\n  files.\\nmetadata:\\n  by: "me"')
    {'name': 'tidy', 'description': 'Tidy up files.', 'by': 'me'}
    """
    values: dict[str, str] = {}
    lines = text.replace("\r\n", "\n").split("\n")
    at = 0
    while at < len(lines):
        match = _KEY.match(lines[at])
        at += 1
        if match is None:
            continue
        value, depth = match["value"] or "", len(match["indent"])
        block: list[str] = []
        while at < len(lines) and (not lines[at].strip() or _indent(lines[at]) > depth) and _is_text(value, lines[at]):
            block.append(lines[at].strip())
            at += 1
        if value or block:
            values[match["key"]] = _scalar(value, block)
    return values


def _is_text(value: str, line: str) -> bool:
    """Whether an indented line goes on with the value above; below a key without one, keys of its own may begin."""
    return bool(value) or _KEY.match(line) is None


def _scalar(value: str, block: list[str]) -> str:
    if value[:1] in ("|", ">"):
        return ("\n" if value[0] == "|" else " ").join(block).strip()
    text = " ".join([value, *block]).strip()
    if text[:1] == '"':
        try:
            parsed = json.loads(text)
        except ValueError:
            return text.strip('"')
        return parsed if isinstance(parsed, str) else text
    if text[:1] == "'":
        return text.strip("'").replace("''", "'")
    return text.partition(" #")[0].strip()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _of(playbook: AgentPlaybook) -> SkillPlaybook:
    return SkillPlaybook(playbook.content, playbook.trigger or "", playbook.rationale or "", playbook.scope)


def _description(agent_version: str, playbooks: list[AgentPlaybook]) -> str:
    """What the skill is about, and when its rules apply, as far as there is room: by it an agent finds the skill."""
    triggers = dict.fromkeys(_one_line(playbook.trigger) for playbook in playbooks if playbook.trigger)
    text = f"What {agent_version or 'the agent'} learned from users and people approved. Use it when:"
    rest = [trigger for trigger in triggers if trigger]
    for trigger in rest:
        if len(text) + len(trigger) + 2 > LONGEST_DESCRIPTION:
            break
        text += f" {trigger};"
    return text.rstrip(";:") + "." if rest else text.replace(" Use it when:", " Use it always.")


def _section(playbook: SkillPlaybook) -> str:
    heading = f"{WHEN}{_one_line(playbook.trigger)}" if playbook.trigger.strip() else ANY_TIME
    parts = [heading, *([ALWAYS] if playbook.scope is Scope.ALWAYS else []), "", _escaped(playbook.content)]
    if playbook.rationale.strip():
        parts += ["", f"{WHY}{_escaped(playbook.rationale)}"]
    return "\n" + "\n".join(parts)


def _playbooks(body: str) -> Iterator[SkillPlaybook]:
    sections = list(_SECTION.finditer(body))
    for section, following in zip(sections, [*sections[1:], None], strict=True):
        text = body[section.end() : following.start() if following else len(body)].strip("\n")
        is_always = text.startswith(ALWAYS)
        content, _, rationale = text.removeprefix(ALWAYS).strip("\n").partition(f"\n\n{WHY}")
        if content.strip():
            scope = Scope.ALWAYS if is_always else Scope.WHEN_RELEVANT
            yield SkillPlaybook(_unescaped(content), (section["when"] or "").strip(), _unescaped(rationale), scope)


def _escaped(text: str) -> str:
    """Lines that mean something here get a backslash more."""
    return _SPECIAL.sub(r"\\\1", without_hidden(text).replace("\r", "").strip("\n"))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


def _one_line(text: str | None) -> str:
    return " ".join(without_hidden(text or "").split())


def _slug(text: str) -> str:
    """A name of lower-case letters, digits and single hyphens."""
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:LONGEST_NAME].strip("-")
    return slug or "playbooks"


def _unique(name: str, taken: set[str]) -> str:
    number, unique = 1, name
    while unique in taken:
        number += 1
        unique = f"{name[: LONGEST_NAME - 1 - len(str(number))]}-{number}"
    taken.add(unique)
    return unique


def wording(playbook: SkillPlaybook | AgentPlaybook) -> tuple[str, str]:
    """By which a playbook is recognised: when it applies and what to do, whatever the spaces."""
    return " ".join((playbook.trigger or "").split()), " ".join(playbook.content.split())
