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


def is_generated(text: str) -> bool:
    return text.startswith("# Generated from ")


def check(modules: dict[Path, tuple[str, ast.Module]], retired: set[str]) -> list[str]:
    """What is wrong, one line each."""
    problems, classes = [], defaultdict[str, list[str]](list)
    for path, (text, tree) in modules.items():
        place = path.relative_to(ROOT)
        if is_generated(text):
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


def size(modules: list[tuple[str, ast.Module]]) -> tuple[int, int]:
    """Lines, and lines of code."""
    return sum(text.count("\n") for text, _ in modules), sum(code_lines(text, tree) for text, tree in modules)


def main() -> int:
    texts = {path: path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
    modules = {path: (text, ast.parse(text)) for path, text in texts.items()}
    problems = check(modules, retired_words(GLOSSARY.read_text()))
    written = [module for module in modules.values() if not is_generated(module[0])]
    named = [text for path, text in texts.items() if path.name != "__init__.py" and not is_generated(text)]
    lengths = [text.count("\n") for text in named]
    (lines, code), (all_lines, all_code) = size(written), size(list(modules.values()))
    sys.stdout.write(
        f"{len(named)} modules written by hand: {lines:,} lines, {code:,} of code; "
        f"median {median(lengths):.0f} lines, {sum(length <= 50 for length in lengths)} modules of at most 50.\n"
        f"With {len(modules) - len(written)} generated modules: {all_lines:,} lines, {all_code:,} of code.\n"
    )
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
