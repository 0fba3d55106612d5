"""Parses Markdown pages: code blocks, sections, links and tables, with line numbers."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_FENCE = re.compile(r"```(\w*)")
_FRAGMENT = re.compile(r"<!-- fragment: \S.*-->")
_LINK = re.compile(r"(?<!!)\[[^\]\n]+\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A code block. A comment above marks a fragment and says why it cannot run."""

    language: str
    line: int
    code: tuple[str, ...]
    fragment: bool = False


@dataclass(frozen=True)
class Page:
    path: Path

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def lines(self) -> list[str]:
        return self.path.read_text().splitlines()

    def blocks(self) -> list[Block]:
        """Every code block; `line` counts from one and is the first line of code."""
        blocks: list[Block] = []
        lines = self.lines
        start = 0
        for number, line in enumerate(lines, 1):
            if not line.startswith("```"):
                continue
            if not start:
                start = number
                continue
            language = _FENCE.match(lines[start - 1])
            assert language is not None
            above = next((earlier for earlier in reversed(lines[: start - 1]) if earlier.strip()), "")
            code = tuple(lines[start : number - 1])
            blocks.append(Block(language[1], start + 1, code, bool(_FRAGMENT.fullmatch(above.strip()))))
            start = 0
        assert not start, f"{self.name}:{start}: this block is never closed"
        return blocks

    def prose(self) -> str:
        """The page without its code blocks."""
        lines = self.lines
        for block in self.blocks():
            for number in range(block.line - 2, block.line + len(block.code)):
                lines[number] = ""
        return "\n".join(lines)

    def sections(self) -> dict[str, str]:
        """Headings and the text below each, up to the next heading of any depth."""
        parts = re.split(r"^#+ (.+)$", self.prose(), flags=re.MULTILINE)
        return dict(zip(parts[1::2], parts[2::2], strict=True))

    def links(self) -> list[str]:
        return _LINK.findall(self.prose())

    def anchors(self) -> set[str]:
        return {anchor(heading) for heading in self.sections()}


def anchor(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", heading.lower())
    return kept.replace(" ", "-")


def page(name: str) -> Page:
    return Page(ROOT / name)


def row(text: str, first: str) -> list[str]:
    """The cells of the table row whose first cell is `first` in code type."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if cells and cells[0] == f"`{first}`":
            return cells
    raise AssertionError(f"no table row begins with `{first}`")


def first_cells(text: str) -> set[str]:
    """The first cell of each table row, if it is in code type."""
    return set(re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE))
