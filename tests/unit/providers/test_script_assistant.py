"""The script assistant: how it is started, what it may do, and that no process of it stays behind."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from reflexio.errors import AssistantFailed, InvalidRequest
from reflexio.models.config import PlaybookOptimizerConfig
from reflexio.models.optimisation import ChatMessage, Guidance
from reflexio.providers.assistants import ANYWHERE, FindFolder, RetryPolicy, ScriptAssistant, resolve
from tests.builders import eventually

CONVERSATION = [ChatMessage("user", "Where is it? $HOME `id` ü")]
GUIDANCE = Guidance(12, "Ask.", "A parcel")


def within(folder: Path) -> FindFolder:
    async def find() -> Path:
        return folder

    return find


async def no_folder() -> Path:
    raise InvalidRequest("runs no scripts")


def script(path: Path, args: Sequence[str] = (), retry: RetryPolicy | None = None) -> ScriptAssistant:
    return ScriptAssistant(within(path), args, retry=retry)


def program(folder: Path, source: str, interpreter: str = sys.executable) -> Path:
    path = folder / "assistant"
    path.write_text(f"#!{interpreter}\n{source}")
    path.chmod(0o755)
    return path


def policy(retries: int = 0, seconds: float = 20.0) -> RetryPolicy:
    async def sleep(_: float) -> None:
        """No pause."""

    return RetryPolicy(seconds, retries, 1.0, sleep)


async def test_json_goes_in_and_json_comes_out(tmp_path: Path) -> None:
    source = (
        "import json, sys\nsent = json.load(sys.stdin), sys.argv[1:]\nprint(json.dumps({'content': json.dumps(sent)}))"
    )
    assistant = script(program(tmp_path, source), ["-v", "$HOME; rm *"])
    sent, arguments = json.loads(await assistant.answer(CONVERSATION, GUIDANCE))
    assert sent == {
        "messages": [{"role": "user", "content": CONVERSATION[0].content}],
        "playbooks": [{"id": 12, "content": "Ask.", "trigger": "A parcel"}],
    }
    assert arguments == ["-v", "$HOME; rm *"]


async def test_the_script_does_not_see_the_environment_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
    source = "import json, os\nprint(json.dumps({'content': json.dumps(sorted(os.environ))}))"
    seen = json.loads(await script(program(tmp_path, source)).answer(CONVERSATION, GUIDANCE))
    assert set(seen) <= {"PATH", "LANG", "LC_CTYPE"}


async def test_a_script_may_ignore_its_input(tmp_path: Path) -> None:
    path = program(tmp_path, """echo '{"content": "deaf"}'""", "/bin/sh")
    long = [ChatMessage("user", "x" * 500_000)]
    assert await script(path).answer(long, GUIDANCE) == "deaf"


async def test_a_failing_script_is_retried_and_reported_with_the_end_of_its_stderr(tmp_path: Path) -> None:
    count = tmp_path / "count"
    path = program(tmp_path, f"echo x >> {count}\necho no luck >&2\nexit 3", "/bin/sh")
    with pytest.raises(AssistantFailed, match="ended with code 3: no luck"):
        await script(path, retry=policy(retries=2)).answer(CONVERSATION, GUIDANCE)
    assert count.read_text().count("x") == 3


async def test_a_hanging_script_is_killed_with_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    path = program(tmp_path, f"sleep 600 &\necho $! $$ > {pids}\nsleep 600", "/bin/sh")
    with pytest.raises(AssistantFailed, match="did not answer within"):
        await script(path, retry=policy(seconds=1.0)).answer(CONVERSATION, GUIDANCE)
    for pid in map(int, pids.read_text().split()):
        eventually(lambda pid=pid: _is_gone(pid))  # type: ignore[misc]


async def test_children_that_outlive_a_good_answer_are_killed(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    source = f"""sleep 600 &\necho $! > {pids}\necho '{{"content": "done"}}'"""
    assert await script(program(tmp_path, source, "/bin/sh")).answer(CONVERSATION, GUIDANCE) == "done"
    pid = int(pids.read_text())
    eventually(lambda: _is_gone(pid))


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # Ended, and only waits for somebody to take note of it.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


async def test_a_script_that_prints_endlessly_is_killed(tmp_path: Path) -> None:
    path = program(tmp_path, "while True: print('x' * 65536)")
    with pytest.raises(AssistantFailed, match="longer than"):
        await script(path, retry=policy()).answer(CONVERSATION, GUIDANCE)


async def test_a_long_stderr_does_not_block_the_script(tmp_path: Path) -> None:
    source = "import sys\nsys.stderr.write('x' * 5_000_000)\nprint('{\"content\": \"fine\"}')"
    assert await script(program(tmp_path, source)).answer(CONVERSATION, GUIDANCE) == "fine"


@pytest.mark.parametrize("output", ["hello", "", "[1]", '{"content": 1}', '{"content": "a"} {"content": "b"}'])
async def test_output_that_breaks_the_contract_is_a_failure(tmp_path: Path, output: str) -> None:
    path = program(tmp_path, f"import sys\nsys.stdout.write({output!r})")
    with pytest.raises(AssistantFailed):
        await script(path, retry=policy()).answer(CONVERSATION, GUIDANCE)


async def test_a_script_without_its_interpreter_cannot_be_started(tmp_path: Path) -> None:
    path = program(tmp_path, "", "/nowhere/python")
    with pytest.raises(AssistantFailed, match="cannot be started"):
        await script(path, retry=policy()).answer(CONVERSATION, GUIDANCE)


# From the configuration


def configured(path: Path | str) -> PlaybookOptimizerConfig:
    return PlaybookOptimizerConfig(assistant_script_path=str(path))


async def test_a_file_that_cannot_be_a_script_is_refused_with_the_reason(tmp_path: Path) -> None:
    plain, circle = tmp_path / "plain", tmp_path / "circle"
    plain.write_text("")
    circle.symlink_to(circle)
    unusable: list[tuple[Path | str, str]] = [(circle, "missing"), ("/" + "x" * 5000, "missing")]
    unusable += [("~nobody-of-this-name/x", "missing"), (tmp_path / "nowhere", "missing")]
    for path, why in (*unusable, (tmp_path, "no file"), (plain, "not executable")):
        with pytest.raises(InvalidRequest, match=why):
            await resolve(configured(path), within(ANYWHERE))


async def test_only_scripts_of_the_named_folder_run(tmp_path: Path) -> None:
    folder = tmp_path / "scripts"
    folder.mkdir()
    inside, outside = program(folder, ""), program(tmp_path, "")
    (folder / "link").symlink_to(outside)
    (folder / "up").symlink_to(tmp_path)
    (tmp_path / "scripts-of-others").mkdir()
    sibling = program(tmp_path / "scripts-of-others", "")
    assert isinstance(await resolve(configured(inside), within(folder)), ScriptAssistant)
    tricks = (f"{folder}/../assistant", folder / "link", folder / "up" / "assistant", "/bin/sh", sibling)
    for path in (outside, *tricks):
        with pytest.raises(InvalidRequest, match="REFLEXIO_SCRIPTS"):
            await resolve(configured(path), within(folder))
    with pytest.raises(InvalidRequest, match="runs no scripts"):
        await resolve(configured(inside), no_folder)


async def test_a_refusal_shows_no_path_of_the_server(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await resolve(configured("~/assistant"), within(tmp_path))
    assert str(tmp_path) not in str(refused.value)
    assert str(Path.home()) not in str(refused.value)


async def test_a_link_that_is_moved_out_of_the_folder_is_not_followed_at_the_next_run(tmp_path: Path) -> None:
    folder = tmp_path / "scripts"
    folder.mkdir()
    answer = 'print(\'{"content": "ok"}\')'
    inside, outside = program(folder, answer), program(tmp_path, answer)
    link = folder / "link"
    link.symlink_to(inside)
    assistant = await resolve(configured(link), within(folder))
    assert await assistant.answer(CONVERSATION, GUIDANCE) == "ok"
    link.unlink()
    link.symlink_to(outside)
    with pytest.raises(AssistantFailed, match="REFLEXIO_SCRIPTS"):
        await assistant.answer(CONVERSATION, GUIDANCE)


@pytest.mark.parametrize("url", ["ftp://a.example", "a.example/x", "http://", "https:///x", "http://[::1"])
async def test_a_webhook_url_that_is_not_valid_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest, match="webhook_url"):
        await resolve(PlaybookOptimizerConfig(webhook_url=url), no_folder)


async def test_a_header_that_cannot_be_sent_is_refused_without_showing_it() -> None:
    settings = {"webhook_url": "http://a.example", "webhook_auth_header": "secret\r\nX-Other: 1"}
    with pytest.raises(InvalidRequest) as refused:
        await resolve(PlaybookOptimizerConfig.model_validate(settings), no_folder)
    assert "secret" not in str(refused.value)


async def test_without_an_assistant_the_error_names_the_settings() -> None:
    with pytest.raises(InvalidRequest, match="webhook_url or assistant_script_path"):
        await resolve(PlaybookOptimizerConfig(), within(ANYWHERE))
