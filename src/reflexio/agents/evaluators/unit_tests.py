"""Running an output's unit tests, in a process of its own and within limits."""

import asyncio
import os
import secrets
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from reflexio.agents.code import code_in
from reflexio.agents.evaluators.limited import NOT_STARTED
from reflexio.agents.values import Evaluation

LIMITED = Path(__file__).with_name("limited.py")
NOTHING: Mapping[str, str] = MappingProxyType({})
TESTS = "tests.py"
MEGABYTE = 1024 * 1024


class UnitTests:
    """Passes when the tests run to their end on the output, which is Python code (code fences are taken off).

    `UnitTests("assert add(1, 2) == 3")` puts the tests below the code. With `command`, the code is written to `file`
    beside `files`, and the command passes with exit status 0:
    `UnitTests(command=["python", "-m", "pytest", "-q"], files={"test_it.py": "…"})`; "python" is this one.

    Each run has an empty folder, an environment of its own, no input, `seconds` of time, `memory_mb` of memory and
    files of at most `disk_mb`, its own words among them. At the end its whole process group is ended. This keeps
    accidents in; it is no prison: code that you would not run on this machine belongs into a container.
    """

    def __init__(
        self,
        tests: str = "",
        *,
        command: Sequence[str] = (),
        file: str = "solution.py",
        files: Mapping[str, str] = NOTHING,
        environment: Mapping[str, str] = NOTHING,
        seconds: float = 10.0,
        memory_mb: int = 1024,
        disk_mb: int = 16,
        feedback_chars: int = 1_500,
    ) -> None:
        if bool(tests) == bool(command):
            raise ValueError("UnitTests needs tests or a command, and not both.")
        if isinstance(command, str):
            raise TypeError(f"UnitTests(command={command!r}): give a list of words; no shell reads it.")
        if tests and TESTS in (file, *files):
            raise ValueError(f"The tests are written to {TESTS!r}; nothing else can have that name.")
        if not seconds > 0:
            raise ValueError(f"UnitTests(seconds={seconds!r}): a run takes some time.")
        self._tests = tests
        self._command = list(command)
        self._file = file
        self._files = dict(files)
        self._environment = dict(environment)
        self._seconds = seconds
        self._memory = memory_mb * MEGABYTE
        self._disk = disk_mb * MEGABYTE
        self._feedback_chars = feedback_chars

    async def __call__(self, output: Any) -> Evaluation:
        with tempfile.TemporaryDirectory(prefix="reflexio-", ignore_cleanup_errors=True) as place:
            folder = Path(place)
            self._lay_out(folder, code_in(str(output)))
            mark = secrets.token_hex(16)
            with tempfile.TemporaryFile() as said:
                status = await self._run(folder, mark, said)
                words = self._words(said, folder)
            if status == NOT_STARTED and self._command:
                raise OSError(f"The command could not be started: {words}")
            if status == 0 and (self._command or (folder / mark).exists()):
                return Evaluation(1.0, True)
            return Evaluation(0.0, False, "\n".join(part for part in (self._ending(status), words) if part))

    def _lay_out(self, folder: Path, code: str) -> None:
        files = {**self._files, self._file: code}
        if self._tests:
            files[TESTS] = self._tests
        for name, text in files.items():
            path = (folder / name).resolve()
            if not path.is_relative_to(folder.resolve()):
                raise ValueError(f"The file {name!r} is outside of the folder of the run.")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8", "replace"))

    async def _run(self, folder: Path, mark: str, said: IO[bytes]) -> int | None:
        """The exit status, negative for a signal; None when the time was over."""
        process = await asyncio.create_subprocess_exec(
            *self._words_of_command(mark),
            cwd=folder,
            env={
                "PATH": os.defpath,
                "HOME": str(folder),
                "TMPDIR": str(folder),
                "LANG": "C.UTF-8",
                **self._environment,
            },
            stdin=asyncio.subprocess.DEVNULL,
            # A file and no pipe: nobody has to read along, its length is limited, and no grandchild keeps it open.
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(self._seconds):
                return await process.wait()
        except TimeoutError:
            return None
        finally:
            _end_group(process)
            await process.wait()

    def _words_of_command(self, mark: str) -> list[str]:
        limits = [str(self._memory), str(ceil(self._seconds) + 1), str(self._disk)]
        start = [sys.executable, "-I", "-B", str(LIMITED), *limits]
        if self._tests:
            return [*start, "run", self._file, TESTS, mark]
        command = [sys.executable if word == "python" else word for word in self._command[:1]] + self._command[1:]
        return [*start, "exec", *command]

    def _words(self, said: IO[bytes], folder: Path) -> str:
        """The end of what it said: that is where the failure stands."""
        most = self._feedback_chars
        size = said.seek(0, os.SEEK_END)
        said.seek(max(0, size - 4 * most))
        text = (
            said.read().decode("utf-8", "replace").replace(str(folder.resolve()), "").replace(str(folder), "").strip()
        )
        return text if len(text) <= most else "…" + text[-most:]

    def _ending(self, status: int | None) -> str:
        match status:
            case None:
                return f"It did not end within {self._seconds:g} s."
            case 0:
                return "It ended before the tests did."
            case _ if status < 0:
                return f"It was ended by {_signal(-status)}."
            case _:
                return ""


def _end_group(leader: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            leader.kill()
        else:
            os.killpg(leader.pid, signal.SIGKILL)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
