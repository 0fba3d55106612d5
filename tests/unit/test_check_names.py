"""The check of names and sizes: what it finds, and that it finds nothing in this package."""

import ast
from pathlib import Path

import pytest
from scripts import check_names

GLOSSARY = """
| word | meaning | where in code | retired words |
|---|---|---|---|
| learning | `Kind` says which. | `models` | `classroom`, `school` |
| turn | One message. | `models` | |
"""


def problems(**sources: str) -> list[str]:
    modules = {check_names.PACKAGE / f"{name}.py": (text, ast.parse(text)) for name, text in sources.items()}
    return check_names.check(modules, check_names.retired_words(GLOSSARY))


def test_only_the_last_column_of_the_glossary_retires_words() -> None:
    assert check_names.retired_words(GLOSSARY) == {"classroom", "school"}


def test_a_retired_word_is_found_inside_a_public_name() -> None:
    (problem,) = problems(learning="class Classroom:\n    pass\n")
    assert problem.startswith("src/reflexio/learning.py:1: 'Classroom' uses 'classroom'")
    assert len(problems(learning="def open_school(): ...\nSCHOOL_SIZE = 1\n")) == 2
    assert len(problems(school="")) == 1


def test_private_names_and_words_inside_others_are_fine() -> None:
    assert problems(learning="def _school(): ...\ndef scholar(): ...\n") == []


def test_two_classes_of_one_name_are_found() -> None:
    (problem,) = problems(one="class Plan: ...\n", other="class Plan: ...\n")
    assert problem == "class 'Plan' is defined in src/reflexio/one.py:1, src/reflexio/other.py:1"


def test_code_lines_leave_out_blanks_comments_docstrings_and_imports() -> None:
    text = '"""Doc."""\n\nimport os\n\n# why\ndef f():\n    """Doc."""\n    return os.name\n'
    assert check_names.code_lines(text, ast.parse(text)) == 2


@pytest.mark.slow
def test_this_package_keeps_to_its_glossary() -> None:
    paths = sorted(check_names.PACKAGE.rglob("*.py"))
    modules = {path: (text := path.read_text(), ast.parse(text)) for path in paths}
    assert check_names.check(modules, check_names.retired_words(check_names.GLOSSARY.read_text())) == []
    assert Path(check_names.GLOSSARY).read_text().count("\n") < 60, "the glossary fits on one screen"
