"""Writes `docs/llms.txt`, the index of all pages for agents that read documentation; with --check only compares.

Order and sections are those of the site's navigation; a page's title and first sentence describe it.
With the folder of a built site as argument, also writes the text of all pages into its `llms-full.txt`.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
INDEX = DOCS / "llms.txt"
LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def project() -> dict[str, Any]:
    settings: dict[str, Any] = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    return settings


def pages(entries: list[Any], section: str = "Start") -> Iterator[tuple[str, str]]:
    """The section and path of each page of the navigation, in its order."""
    for entry in entries:
        if isinstance(entry, str):
            yield section, entry
            continue
        for title, inside in entry.items():
            if isinstance(inside, str):
                yield section, inside
            else:
                yield from pages(inside, title)


def describe(path: str) -> str:
    text = CODE.sub("", (DOCS / path).read_text())
    title = text.partition("\n")[0].removeprefix("# ")
    paragraphs = (part.strip() for part in text.split("\n\n")[1:])
    prose = next((part for part in paragraphs if part and part[0] not in "#|`<-"), "")
    sentence = LINK.sub(r"\1", re.split(r"(?<=\.)\s", prose)[0].rstrip(":"))
    return f"- [{title}]({path}): {sentence}"


def index() -> str:
    settings = project()
    lines = [f"# {settings['site_name']}", "", f"> {settings['site_description']}"]
    current = ""
    for section, path in pages(settings["nav"]):
        if section != current:
            lines += ["", f"## {section}", ""]
            current = section
        lines.append(describe(path))
    return "\n".join(lines) + "\n"


def full_text() -> str:
    return "\n\n".join((DOCS / path).read_text().strip() for _, path in pages(project()["nav"])) + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        if not INDEX.exists() or INDEX.read_text() != index():
            sys.exit("docs/llms.txt is not what the pages say: run `make format`")
    else:
        INDEX.write_text(index())
        for folder in sys.argv[1:]:
            (Path(folder) / "llms-full.txt").write_text(full_text())
