"""The assistants that optimisation plays rollouts with: a webhook, or a script on this machine.

Both get the conversation and one playbook as JSON and reply with `{"content": "…"}`. `resolve` picks one of them.
"""

import asyncio
import json
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

import httpx

from reflexio.errors import AssistantFailed, InvalidRequest
from reflexio.models.config import PlaybookOptimizerConfig
from reflexio.models.optimisation import ChatMessage, Guidance
from reflexio.ports.assistant import Assistant
from reflexio.providers.outgoing import OPERATORS, AddressRefused, OutgoingAddresses

MAX_REPLY_BYTES = 1024 * 1024
MAX_BACKOFF_SECONDS = 300.0

WEBHOOK_CONNECT_SECONDS = 10.0
TRANSIENT_STATUSES = {408, 425, 429}

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
"""Nothing of the server's own environment: it holds API keys."""
SCRIPT_OUTPUT_SECONDS = 1.0
"""How long the output of an ended script may take to arrive."""
READ_BYTES = 65_536
STDERR_BYTES = 500


ANYWHERE = Path("/")
"""The folder of a server that may run any script."""
FindFolder = Callable[[], Awaitable[Path]]
"""Finds the folder that scripts must be in at the moment. Raises InvalidRequest when none may run."""


class TransientFailure(AssistantFailed):
    """The assistant failed in a way that a retry may overcome."""


@dataclass(frozen=True)
class RetryPolicy:
    """Seconds for one try, the number of retries, and the pause before the first retry, which then doubles."""

    seconds: float = 60.0
    retries: int = 3
    backoff: float = 1.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def run(self, attempt: Callable[[], Awaitable[bytes]]) -> bytes:
        tries = 0
        while True:
            try:
                async with asyncio.timeout(self.seconds):
                    return await attempt()
            except TimeoutError:
                failure = TransientFailure(f"The assistant did not answer within {self.seconds:g} s.")
            except TransientFailure as error:
                failure = error
            if tries == self.retries:
                raise failure
            await self.sleep(min(MAX_BACKOFF_SECONDS, self.backoff * 2.0**tries))
            tries += 1


async def resolve(
    config: PlaybookOptimizerConfig, find_folder: FindFolder, *, addresses: OutgoingAddresses = OPERATORS
) -> Assistant:
    """The configured assistant. Raises InvalidRequest, with the reason, when there is none that can be called.

    A script must be in the folder that `find_folder` returns now, and again whenever it is about to run.
    """
    retry = RetryPolicy(
        float(config.webhook_timeout_seconds), config.webhook_max_retries, config.webhook_backoff_base_seconds
    )
    if config.webhook_url and config.assistant_script_path:
        raise InvalidRequest("Two assistants are configured; set webhook_url or assistant_script_path, not both.")
    if config.webhook_url:
        url = _check_url(config.webhook_url)
        auth_header = config.webhook_auth_header.get_secret_value() if config.webhook_auth_header else ""
        if not auth_header.isprintable() or not auth_header.isascii():
            raise InvalidRequest("webhook_auth_header contains characters that a header cannot have.")
        return WebhookAssistant(url, addresses=addresses, auth_header=auth_header, retry=retry)
    if config.assistant_script_path:
        script = config.assistant_script_path

        async def find() -> Path:
            return find_script(script, await find_folder())

        await find()
        return ScriptAssistant(find, config.assistant_script_args, retry=retry)
    raise InvalidRequest("There is no assistant to try playbooks with: set webhook_url or assistant_script_path.")


def _check_url(text: str) -> str:
    try:
        url = httpx.URL(text.strip())
    except httpx.InvalidURL as error:
        raise InvalidRequest(f"webhook_url {text!r} is not a URL: {error}.") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidRequest(f"webhook_url {text!r} does not begin with http:// or https:// and a host.")
    return str(url)


def find_script(text: str, folder: Path) -> Path:
    """The file of a script, which must be in `folder` after symbolic links and `..` are followed."""
    try:
        path = Path(text).expanduser()
        target = path.resolve()
        if not target.is_relative_to(folder.resolve()):
            raise InvalidRequest(f"The assistant script {text!r} is not in the folder that REFLEXIO_SCRIPTS names.")
        is_file = target.is_file()
    except (OSError, RuntimeError, ValueError):  # a name too long, links in a circle, the home of an unknown user
        is_file = False
    if not is_file:
        raise InvalidRequest(f"The assistant script {text!r} is missing or is no file.")
    if not os.access(target, os.X_OK):
        raise InvalidRequest(f"The assistant script {text!r} is not executable.")
    # In a folder of the operator the file that was checked is the one that runs. Where any program may run, the name
    # stays: an interpreter finds its packages by it.
    return path.absolute() if folder == ANYWHERE else target


def payload(messages: Sequence[ChatMessage], guidance: Guidance) -> bytes:
    """The request: the conversation, and the playbook to follow."""
    playbook = {"id": guidance.id, "content": guidance.content, "trigger": guidance.trigger}
    conversation = [{"role": message.role, "content": message.content} for message in messages]
    return json.dumps({"messages": conversation, "playbooks": [playbook]}).encode()


def _content(reply: bytes) -> str:
    """The text of a reply. Keys other than `content` are ignored."""
    # Not a byte of the reply: the address may lead to an internal server, and a reason reaches the caller.
    size = f"{len(reply):,} bytes came back" if reply else "nothing came back"
    try:
        body = json.loads(reply)
    except (ValueError, RecursionError) as error:
        raise AssistantFailed(f'The assistant did not answer with JSON {{"content": "…"}}: {size}.') from error
    content = body.get("content") if isinstance(body, dict) else None
    if not isinstance(content, str):
        raise AssistantFailed(f'The assistant\'s JSON has no text under "content": {size}.')
    # Databases and models reject NUL and lone surrogates.
    return content.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


async def _read_bounded(parts: AsyncIterator[bytes]) -> bytes:
    reply = bytearray()
    async for part in parts:
        reply += part
        if len(reply) > MAX_REPLY_BYTES:
            raise AssistantFailed(f"The assistant's reply is longer than {MAX_REPLY_BYTES:,} bytes.")
    return bytes(reply)


class WebhookAssistant:
    """Posts to `url`. `auth_header` is sent unchanged. Redirects are not followed: they could lead anywhere."""

    def __init__(
        self, url: str, *, addresses: OutgoingAddresses, auth_header: str = "", retry: RetryPolicy | None = None
    ) -> None:
        self._url = httpx.URL(url)
        self._addresses = addresses
        self._retry = retry or RetryPolicy()
        authorization = {"Authorization": auth_header} if auth_header else {}
        self._headers = {"Content-Type": "application/json", **authorization}
        self._client: httpx.AsyncClient | None = None

    async def answer(self, messages: Sequence[ChatMessage], guidance: Guidance) -> str:
        body = payload(messages, guidance)
        return _content(await self._retry.run(lambda: self._post(body)))

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def _post(self, body: bytes) -> bytes:
        # No words of an error of the connection: they may repeat what an internal server answered.
        try:
            return await self._send(body)
        except AddressRefused as error:
            raise AssistantFailed(f"The webhook is not called. {error}") from error
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise TransientFailure("The webhook cannot be reached.") from error
        except httpx.HTTPError as error:
            raise TransientFailure(f"The webhook failed: {type(error).__name__}.") from error

    async def _send(self, body: bytes) -> bytes:
        async with self._open_client().stream("POST", self._url, content=body, headers=self._headers) as response:
            status = response.status_code
            if status in TRANSIENT_STATUSES or status >= 500:
                raise TransientFailure(f"The webhook answered with HTTP {status}.")
            if response.is_redirect:
                raise AssistantFailed(f"The webhook redirects (HTTP {status}); set webhook_url to the final address.")
            if not response.is_success:
                raise AssistantFailed(f"The webhook answered with HTTP {status}.")
            return await _read_bounded(response.aiter_bytes())

    def _open_client(self) -> httpx.AsyncClient:
        """Opened at the first use, and for http without certificates: reading them takes a while."""
        if self._client is None:
            seconds = self._retry.seconds
            self._client = httpx.AsyncClient(
                follow_redirects=False,
                trust_env=False,
                transport=self._addresses.guard(httpx.AsyncHTTPTransport(verify=self._url.scheme == "https")),
                timeout=httpx.Timeout(seconds, connect=min(WEBHOOK_CONNECT_SECONDS, seconds)),
            )
        return self._client


class ScriptAssistant:
    """Runs a script for every answer, JSON on standard input and output, without a shell.

    `find` is asked before every run, because the script may have lost its permission since. The script runs in its
    own process group; all processes of the group end with it.
    """

    def __init__(
        self, find: Callable[[], Awaitable[Path]], args: Sequence[str] = (), *, retry: RetryPolicy | None = None
    ) -> None:
        self._find = find
        self._args = args
        self._retry = retry or RetryPolicy()

    async def answer(self, messages: Sequence[ChatMessage], guidance: Guidance) -> str:
        body = payload(messages, guidance)
        return _content(await self._retry.run(lambda: self._run(body)))

    async def aclose(self) -> None:
        """Holds nothing open."""

    async def _run(self, body: bytes) -> bytes:
        async with _open_pipe() as (stdout, stdout_end), _open_pipe() as (stderr, stderr_end):
            try:
                process = await self._start(body, stdout_end, stderr_end)
            finally:
                os.close(stdout_end)
                os.close(stderr_end)
            exit_code = asyncio.create_task(process.wait())
            output = asyncio.create_task(_read_bounded(_chunks(stdout)))
            complaint = asyncio.create_task(_read_tail(stderr))
            try:
                await asyncio.wait({exit_code, output}, return_when=asyncio.FIRST_COMPLETED)
                if output.done():
                    output.result()  # Raises when it is too long.
                code = await exit_code
                # Processes that the script started end with it, and hold no output open.
                _kill_group(process.pid)
                await asyncio.wait({output, complaint}, timeout=SCRIPT_OUTPUT_SECONDS)
                if code != 0:
                    words = complaint.result() if complaint.done() else ""
                    raise TransientFailure(f"The assistant script ended with code {code}: {words}")
                if not output.done():
                    raise TransientFailure("The assistant script ended, but a process of it still holds its output.")
                return output.result()
            finally:
                _kill_group(process.pid)
                for task in (exit_code, output, complaint):
                    task.cancel()
                await asyncio.gather(exit_code, output, complaint, process.wait(), return_exceptions=True)

    async def _start(self, body: bytes, stdout: int, stderr: int) -> Process:
        try:
            path = await self._find()
        except InvalidRequest as error:
            raise AssistantFailed(str(error)) from error
        with TemporaryFile() as stdin:
            stdin.write(body)
            stdin.seek(0)
            try:
                return await asyncio.create_subprocess_exec(
                    str(path),
                    *self._args,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    env=ENVIRONMENT,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                reason = (error.strerror if isinstance(error, OSError) else "") or type(error).__name__  # no path
                raise AssistantFailed(f"The assistant script cannot be started: {reason}.") from error


@asynccontextmanager
async def _open_pipe() -> AsyncIterator[tuple[asyncio.StreamReader, int]]:
    """A reader, and the file descriptor to write to, which the caller closes.

    Not a pipe of asyncio's process: asyncio considers a process running as long as anybody holds one of those open.
    """
    read_end, write_end = os.pipe()
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_end, "rb", 0)
    )
    try:
        yield reader, write_end
    finally:
        transport.close()


async def _chunks(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while chunk := await stream.read(READ_BYTES):
        yield chunk


async def _read_tail(stream: asyncio.StreamReader) -> str:
    tail = b""
    async for chunk in _chunks(stream):
        tail = (tail + chunk)[-STDERR_BYTES:]
    return tail.decode("utf-8", "replace").strip()


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # All processes of the group may have ended.
        os.killpg(group, signal.SIGKILL)
