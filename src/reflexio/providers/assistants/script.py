"""An assistant that is a program on this machine: JSON on standard input, JSON on standard output."""

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryFile

from reflexio.errors import AssistantFailed
from reflexio.models.rollout import Guidance, Message
from reflexio.providers.assistants.exchange import MOST_BYTES, Passing, Patience, content, payload, too_long

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
"""Nothing of the server's own: its keys are in there."""
CHUNK = 65_536
LAST_WORDS = 500
GRACE = 1.0


def obstacle(path: Path) -> str:
    """Why this file cannot be an assistant; nothing when it can."""
    if not path.is_file():
        return f"The assistant script {str(path)!r} is missing or is no file."
    if not os.access(path, os.X_OK):
        return f"The assistant script {str(path)!r} is not executable."
    return ""


class ScriptAssistant:
    """Starts `path` for every answer: without a shell, in a process group of its own that ends with it."""

    def __init__(self, path: Path, args: Sequence[str] = (), *, patience: Patience | None = None) -> None:
        self._command = [str(path.absolute()), *args]
        self._patience = patience or Patience()

    async def answer(self, messages: Sequence[Message], guidance: Guidance) -> str:
        body = payload(messages, guidance)
        return content(await self._patience(lambda: self._run(body)))

    async def aclose(self) -> None:
        """Nothing is held."""

    async def _run(self, body: bytes) -> bytes:
        async with _ear() as (said, mouth), _ear() as (complained, other_mouth):
            try:
                process = await self._start(body, mouth, other_mouth)
            finally:
                os.close(mouth)
                os.close(other_mouth)
            answer = asyncio.create_task(_bounded(said))
            last_words = asyncio.create_task(_last_words(complained))
            try:
                return await _heard(process, answer, last_words)
            finally:
                _end_group(process.pid)
                for task in (answer, last_words):
                    task.cancel()
                await asyncio.gather(answer, last_words, process.wait(), return_exceptions=True)

    async def _start(self, body: bytes, stdout: int, stderr: int) -> Process:
        with TemporaryFile() as stdin:
            stdin.write(body)
            stdin.seek(0)
            try:
                return await asyncio.create_subprocess_exec(
                    *self._command, stdin=stdin, stdout=stdout, stderr=stderr, env=ENVIRONMENT, start_new_session=True
                )
            except (OSError, ValueError) as error:
                raise AssistantFailed(f"The assistant script cannot be started: {error}") from error


@asynccontextmanager
async def _ear() -> AsyncIterator[tuple[asyncio.StreamReader, int]]:
    """A pipe: what comes out of it, and the end to write to, which is the caller's to close.

    Not one of the process's own: asyncio takes a process for running as long as anybody holds one of those open.
    """
    reading, writing = os.pipe()
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", 0)
    )
    try:
        yield reader, writing
    finally:
        transport.close()


async def _heard(process: Process, answer: "asyncio.Task[bytes]", last_words: "asyncio.Task[str]") -> bytes:
    """The output, once the program has ended. Whatever it started ends then too, and holds no output open."""
    ended = asyncio.create_task(process.wait())
    try:
        await asyncio.wait({ended, answer}, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            answer.result()  # Raises when it is too long.
        code = await ended
        _end_group(process.pid)
        await asyncio.wait({answer, last_words}, timeout=GRACE)
    finally:
        ended.cancel()
    if code != 0:
        words = last_words.result() if last_words.done() else ""
        raise Passing(f"The assistant script ended with code {code}: {words}")
    if not answer.done():
        raise Passing("The assistant script ended, and something that it started still holds its output.")
    return answer.result()


async def _bounded(stdout: asyncio.StreamReader) -> bytes:
    read = bytearray()
    while part := await stdout.read(CHUNK):
        read += part
        if len(read) > MOST_BYTES:
            raise too_long()
    return bytes(read)


async def _last_words(stderr: asyncio.StreamReader) -> str:
    kept = b""
    while part := await stderr.read(CHUNK):
        kept = (kept + part)[-LAST_WORDS:]
    return kept.decode("utf-8", "replace").strip()


def _end_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # All of it has ended.
