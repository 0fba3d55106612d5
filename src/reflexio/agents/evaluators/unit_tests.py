"""Running unit tests on an output, in a separate process and within limits."""

import asyncio
import os
import secrets
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from math import ceil
from pathlib import Path
from typing import IO, Any

from reflexio.agents.attempt import Evaluation
from reflexio.agents.evaluators.evaluation import extract_code
from reflexio.agents.evaluators.limited import NOT_STARTED

LIMITED = Path(__file__).with_name("limited.py")
TESTS = "tests.py"
MEGABYTE = 1024 * 1024


@dataclass(frozen=True, eq=False)
class UnitTests:
    """Passes when the tests run to their end on the output, which is Python code (code fences are removed).

    `UnitTests("assert add(1, 2) == 3")` puts the tests below the code. With `command`, the code is written to `file`
    beside `files`, and the command passes with exit status 0:
    `UnitTests(command=["python", "-m", "pytest", "-q"], files={"test_it.py": "…"})`; "python" is this interpreter.

    Each run has an empty folder, its own environment, no input, `seconds` of time, `memory_mb` of memory and files of
    at most `disk_mb`, including its printed output. At the end its whole process group is killed. This contains
    accidents, not attacks: run code that you do not trust in a container.
    """

    tests: str = ""
    _: KW_ONLY
    command: Sequence[str] = ()
    file: str = "solution.py"
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 10.0
    memory_mb: int = 1024
    disk_mb: int = 16
    feedback_chars: int = 1_500

    def __post_init__(self) -> None:
        if str(self.tests).endswith(".py") and "\n" not in str(self.tests):
            raise TypeError(
                f"UnitTests(tests={self.tests!r}): give the code of the tests, as in Path(…).read_text(), not its file."
            )
        if bool(self.tests) == bool(self.command):
            raise ValueError("UnitTests needs tests or a command, and not both.")
        for name, text in self.files.items():
            if not isinstance(text, str):
                raise TypeError(f"UnitTests(files={{{name!r}: …}}): give its content as text, not {text!r}.")
        if isinstance(self.command, str):
            raise TypeError(f"UnitTests(command={self.command!r}): give a list of words; no shell reads it.")
        if self.tests and TESTS in (self.file, *self.files):
            raise ValueError(f"The tests are written to {TESTS!r}; no other file can have that name.")
        if not self.seconds > 0:
            raise ValueError(f"UnitTests(seconds={self.seconds!r}): the time must be more than 0.")

    async def __call__(self, output: Any) -> Evaluation:
        with tempfile.TemporaryDirectory(prefix="reflexio-", ignore_cleanup_errors=True) as path:
            folder = Path(path)
            self._write_files(folder, extract_code(str(output)))
            passed_file = secrets.token_hex(16)
            with tempfile.TemporaryFile() as printed:
                status = await self._run(folder, passed_file, printed)
                words = self._end_of(printed, folder)
            if status == NOT_STARTED and self.command:
                raise OSError(
                    f"The command of these tests could not be started: {words}. Its first word must be a program on "
                    f"{os.defpath}, its full path, or 'python'."
                )
            if status == 0 and (self.command or (folder / passed_file).exists()):
                return Evaluation(1.0, True)
            return Evaluation(0.0, False, "\n".join(part for part in (self._describe_exit(status), words) if part))

    def _write_files(self, folder: Path, code: str) -> None:
        files = {**self.files, self.file: code, **({TESTS: self.tests} if self.tests else {})}
        for name, text in files.items():
            try:
                path = (folder / name).resolve()
                if not path.is_relative_to(folder.resolve()):
                    raise ValueError(f"The file {name!r} is outside of the folder of these tests; rename it.")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text.encode("utf-8", "replace"))
            except OSError as error:
                raise OSError(
                    f"The file {name!r} of these tests cannot be written: {error.strerror}. Give it another name, or "
                    "make room where temporary files are."
                ) from error

    async def _run(self, folder: Path, passed_file: str, printed: IO[bytes]) -> int | None:
        """The exit status, negative for a signal; None after a timeout."""
        limits = (self.memory_mb * MEGABYTE, ceil(self.seconds) + 1, self.disk_mb * MEGABYTE)
        if self.tests:
            action = ["run", self.file, TESTS, passed_file]
        else:
            program, *args = self.command
            action = ["exec", sys.executable if program == "python" else program, *args]
        home = str(folder)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-B", str(LIMITED), *map(str, limits), *action),
            cwd=folder,
            env={"PATH": os.defpath, "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8", **self.environment},
            stdin=asyncio.subprocess.DEVNULL,
            # A file and no pipe: nobody has to read it meanwhile, its length is limited, no grandchild keeps it open.
            stdout=printed,
            stderr=printed,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(self.seconds):
                return await process.wait()
        except TimeoutError:
            return None
        finally:
            _kill_group(process)
            await process.wait()

    def _end_of(self, printed: IO[bytes], folder: Path) -> str:
        """The end of the printed output, where the failure is."""
        size = printed.seek(0, os.SEEK_END)
        printed.seek(max(0, size - 4 * self.feedback_chars))
        text = printed.read().decode("utf-8", "replace")
        text = text.replace(str(folder.resolve()), "").replace(str(folder), "").strip()
        return text if len(text) <= self.feedback_chars else "…" + text[-self.feedback_chars :]

    def _describe_exit(self, status: int | None) -> str:
        if status is None:
            return f"It did not end within {self.seconds:g} s."
        if status == 0:
            return "It ended before the tests did."
        return f"It was ended by {_signal_name(-status)}." if status < 0 else ""


def _kill_group(leader: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            leader.kill()
        else:
            os.killpg(leader.pid, signal.SIGKILL)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
