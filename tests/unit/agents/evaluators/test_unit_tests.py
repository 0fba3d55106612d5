"""Unit tests of an output run in a process of their own, within limits, and leave nothing behind."""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from reflexio.agents import UnitTests

PASSES = "assert add(1, 2) == 3"
ADD = "def add(a, b):\n    return a + b\n"


async def test_code_that_passes_its_tests_passes() -> None:
    found = await UnitTests(PASSES)(ADD)
    assert (found.score, found.passed, found.feedback) == (1.0, True, "")


async def test_code_fences_are_taken_off() -> None:
    assert (await UnitTests(PASSES)(f"Sure!\n```python\n{ADD}```\nIt adds.")).passed


async def test_a_failure_is_told_with_its_place_and_without_ours() -> None:
    found = await UnitTests("assert add(1, 2) == 3, 'one and two'")("def add(a, b):\n    return a - b")
    assert not found.passed
    assert "one and two" in found.feedback
    assert 'File "tests.py", line 1' in found.feedback
    assert "limited.py" not in found.feedback


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def add(a, b:", "SyntaxError"),
        ("import sys; sys.exit(0)", "ended before the tests did"),
        ("import os; os._exit(0)", "ended before the tests did"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "SIGTERM"),
        ("x = bytearray(2 * 1024 ** 3)", "MemoryError"),
        ("open('big', 'wb').write(bytes(20 * 1024 ** 2))", "File too large"),
        ("input()", "EOFError"),
        ("\ud800", ""),
        ("raise SystemExit('enough')", "enough"),
    ],
)
async def test_code_that_misbehaves_has_not_passed(code: str, words: str) -> None:
    found = await UnitTests("pass")(code)
    assert (found.passed, found.error) == (False, None)
    assert words in found.feedback


async def test_code_that_does_not_end_is_ended() -> None:
    found = await UnitTests("pass", seconds=0.5)("while True: pass")
    assert "did not end within 0.5 s" in found.feedback


async def test_code_that_talks_without_end_is_cut() -> None:
    found = await UnitTests("assert False, 'the end'", disk_mb=1, feedback_chars=100)("print('talk ' * 10_000)")
    assert "the end" in found.feedback
    assert len(found.feedback) <= 101
    assert not (await UnitTests("pass", disk_mb=1)("while True: print('talk ' * 10_000)")).passed


async def test_the_environment_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "value")
    tests = "import os; assert 'SECRET' not in os.environ; assert os.environ['MINE'] == '1'; assert os.listdir() "
    assert (await UnitTests(tests, environment={"MINE": "1"})("")).passed


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


async def _gone(process: int) -> bool:
    for _ in range(500):
        if not _is_alive(process):
            return True
        await asyncio.sleep(0.01)
    return False


@pytest.mark.skipif(sys.platform == "win32", reason="processes are told apart by /proc")
async def test_processes_that_it_started_are_ended_with_it(tmp_path: Path) -> None:
    note = tmp_path / "child"
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))\n"
    )
    began = time.monotonic()
    assert (await UnitTests("pass")(code)).passed
    assert time.monotonic() - began < 60
    assert await _gone(int(note.read_text()))


async def test_a_cancelled_run_ends_its_processes(tmp_path: Path) -> None:
    note = tmp_path / "process"
    code = f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    running = asyncio.create_task(UnitTests("pass", seconds=600)(code))
    while not (note.exists() and note.read_text()):  # noqa: ASYNC110  another process writes it
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await _gone(int(note.read_text()))


async def test_a_command_runs_beside_files_of_ones_own() -> None:
    tests = "import unittest, solution\nclass T(unittest.TestCase):\n  def test(self): assert solution.add(1, 2) == 3\n"
    command = UnitTests(command=["python", "-m", "unittest", "-q"], files={"test_it.py": tests})
    assert (await command(ADD)).passed
    failed = await command("def add(a, b): return 0")
    assert not failed.passed
    assert "AssertionError" in failed.feedback


async def test_a_command_that_is_not_there_is_the_evaluators_fault() -> None:
    with pytest.raises(OSError, match="no-such-program: No such file"):
        await UnitTests(command=["no-such-program"])("")


def test_what_cannot_be_run_is_refused() -> None:
    with pytest.raises(ValueError, match="tests or a command"):
        UnitTests()
    with pytest.raises(TypeError, match="list of words"):
        UnitTests(command="pytest -q")


async def test_files_stay_in_their_folder() -> None:
    with pytest.raises(ValueError, match="outside of the folder"):
        await UnitTests("pass", files={"../escaped.py": ""})("")


async def test_a_solution_is_not_told_how_passing_is_marked() -> None:
    cheat = "import os, sys\nopen(sys.argv[-1], 'x').close()\nos._exit(0)"
    assert not (await UnitTests("assert False")(cheat)).passed


@pytest.mark.parametrize("given", [{"file": "tests.py"}, {"files": {"tests.py": ""}}, {"seconds": 0}, {"seconds": -1}])
def test_tests_that_could_never_tell_anything_are_refused(given: Any) -> None:
    with pytest.raises(ValueError, match=r"tests\.py|seconds"):
        UnitTests("assert True", **given)


@pytest.mark.parametrize("given", ["tests/test_add.py", Path("test_add.py")])
def test_the_file_of_tests_is_not_their_code(given: Any) -> None:
    with pytest.raises(TypeError, match=r"test_add\.py.*read_text"):
        UnitTests(given)


def test_files_hold_text() -> None:
    files: Any = {"data.bin": b"x"}
    with pytest.raises(TypeError, match=r"data\.bin.*as text"):
        UnitTests(PASSES, files=files)


async def test_a_file_that_cannot_be_written_is_named() -> None:
    with pytest.raises(OSError, match=r"The file 'solution\.py/x' of these tests cannot be written.*another name"):
        await UnitTests(PASSES, files={"solution.py": "", "solution.py/x": ""})(ADD)


async def test_a_command_that_does_not_exist_says_what_may_be_named() -> None:
    with pytest.raises(OSError, match=r"nowhere: No such file.*a program on .*'python'"):
        await UnitTests(command=["nowhere"])(ADD)
