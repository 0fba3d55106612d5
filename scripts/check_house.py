"""Checks the names in `src` against the glossary and prints the size of the package.

Fails when two classes have the same name, or when a public name contains a word that the glossary retires.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "reflexio"
GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"
MOST_LINES, MOST_CODE = 30_000, 18_000


def retired_words(glossary: str) -> set[str]:
    """The words in backticks in the last column of the glossary's tables."""
    rows = [line.rstrip().rstrip("|").split("|") for line in glossary.splitlines() if line.startswith("|")]
    return {word.lower() for row in rows for word in re.findall(r"`([^`]+)`", row[-1]) if word.isidentifier()}


def words_of(name: str) -> list[str]:
    """The parts of a name: `TokenBudget` and `token_budget` are token and budget."""
    return [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)]


def defined_names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Public names of modules, classes, functions and methods, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield node.name, node.lineno
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        for target in targets:
            if isinstance(target, ast.Name) and not target.id.startswith("_"):
                yield target.id, statement.lineno


def code_lines(text: str, tree: ast.Module) -> int:
    """Lines without blanks, comments, docstrings and imports."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_docstring(node):
            assert isinstance(node, ast.stmt)
            skipped.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(1 for number, line in lines if line.strip() and line.lstrip()[0] != "#" and number not in skipped)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def is_generated(path: Path) -> bool:
    return "sync" in path.relative_to(PACKAGE).parts


def check(modules: dict[Path, tuple[str, ast.Module]], retired: set[str]) -> list[str]:
    """What is wrong, one line each."""
    problems, classes = [], defaultdict[str, list[str]](list)
    for path, (_, tree) in modules.items():
        place = path.relative_to(ROOT)
        if is_generated(path):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(f"{place}:{node.lineno}")
        names = [(path.stem, 1), *defined_names(tree)]
        problems += [
            f"{place}:{line}: {name!r} uses {word!r}, which docs/reference/glossary.md retires"
            for name, line in names
            for word in words_of(name)
            if word in retired
        ]
    twice = {name: places for name, places in classes.items() if len(places) > 1}
    return problems + [f"class {name!r} is defined in {', '.join(places)}" for name, places in sorted(twice.items())]


def main() -> int:
    texts = {path: path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
    modules = {path: (text, ast.parse(text)) for path, text in texts.items()}
    problems = check(modules, retired_words(GLOSSARY.read_text()))
    lines = {path: text.count("\n") for path, (text, _) in modules.items()}
    total, code = sum(lines.values()), sum(code_lines(text, tree) for text, tree in modules.values())
    written = [count for path, count in lines.items() if path.name != "__init__.py" and not is_generated(path)]
    small = sum(count <= 50 for count in written)
    print(
        f"{len(written)} modules (and {sum(map(is_generated, modules))} generated), "
        f"{total:,} lines, {code:,} of code; median {median(written):.0f} lines, {small} modules of at most 50; "
        f"{sum(isinstance(n, ast.ClassDef) for _, t in modules.values() for n in ast.walk(t))} classes"
    )
    if total > MOST_LINES or code > MOST_CODE:
        problems.append(f"the package is larger than {MOST_LINES:,} lines or {MOST_CODE:,} lines of code")
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
