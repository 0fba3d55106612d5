"""Erasing a user on a real server leaves nothing: not in any table, and not in the bytes of any file."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from reflexio.cli.app import app
from reflexio.client.sync import ReflexioClient
from reflexio.models.interaction import ClearUserDataResponse
from reflexio.server.process import ServerProcess
from tests.builders import eventually
from tests.conftest import StartServer

USER = "zqxuser-4711"
CANARY = "zqx"
"""Every text of the erased user holds it, and nothing else does."""
OTHERS = ("mia", "noa")


def text(field: str) -> str:
    return f"zqx{field} vorble"


def turn(number: int) -> dict[str, Any]:
    return {
        "role": "user",
        "content": f"My name is Zqx{number}name. Always answer in zqx{number}style bullet points.",
        "shadow_content": text("shadow"),
        "expert_content": text("expert"),
        "user_action": "click",
        "user_action_description": text("action"),
        "interacted_image_url": "https://example.com/zqximage.png",
        "tools_used": [{"tool_name": "zqxtool", "tool_data": {"input": text("toolinput")}}],
    }


def fill(client: ReflexioClient) -> None:
    """Every publishing and adding call, and every feature that reads."""
    for number in range(4):
        client.publish_interaction(
            USER,
            [turn(number), {"role": "assistant", "content": text("answer")}],
            source="zqxsource",
            agent_version="zqxversion",
            session_id=f"zqxsession-{number}",
            wait_for_response=True,
        )
    client.publish_interaction(USER, [turn(9)], session_id="zqxsession-late", force_extraction=True)
    client.add_user_profile(
        [{"user_id": USER, "content": text("profile"), "source": "zqxsource", "custom_features": {"k": text("custom")}}]
    )
    playbook = {"content": "Ask zqxcolleague first.", "trigger": "A parcel is lost", "rationale": text("rationale")}
    client.add_user_playbook([{"user_id": USER, "agent_version": "v1", **playbook} for _ in range(3)])
    client.add_user_playbook(
        [
            {"user_id": user, "agent_version": "v2", "trigger": "A parcel is lost", "content": "Ask the neighbours."}
            for user in (*OTHERS, USER)
        ]
    )
    client.search(text("profile"), user_id=USER)
    client.get_context(text("profile"), user_id=USER)
    client.rerun_profile_generation(user_id=USER, wait_for_response=True)
    # A list beside a name that only this user has: both in the parameters of an operation.
    client.rerun_profile_generation(source="zqxsource", extractor_names=["profile"], wait_for_response=True)
    for version in ("v1", "v2", "zqxversion"):
        client.run_playbook_aggregation(agent_version=version, wait_for_response=True)
    queue = client.get_review_queue().items
    shared = [item.agent_playbook.agent_playbook_id for item in queue if item.support > 1]
    client.review_agent_playbooks(shared, playbook_status="approved", reviewer="operator", reason="as we do it")
    client.search(text("profile"), user_id=USER)


def rows_with_canary(folder: Path) -> list[str]:
    """The tables with a row that holds the canary, whatever the column."""
    connection = sqlite3.connect(folder / "reflexio.db")
    try:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [
            table
            for table in tables
            if any(CANARY in repr(row).lower() for row in connection.execute(f'SELECT * FROM "{table}"'))  # noqa: S608
        ]
    finally:
        connection.close()


def files_with_canary(folder: Path) -> list[str]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [file.name for file in files if CANARY.encode() in file.read_bytes().lower()]


def is_verified(folder: Path, response: ClearUserDataResponse | None, tmp_path: Path) -> tuple[int, str]:
    words = ["erasure", "verify", USER, "--data", str(folder)]
    if response:
        file = tmp_path / "receipt.json"
        file.write_text(response.model_dump_json())
        words += ["--receipt", str(file)]
    result = CliRunner().invoke(app, words)
    return result.exit_code, result.output


@pytest.fixture
def running(start_server: StartServer, tmp_path: Path) -> tuple[ServerProcess, Path]:
    folder = tmp_path / "data"
    return start_server(folder), folder


def test_nothing_of_an_erased_user_is_left(running: tuple[ServerProcess, Path], tmp_path: Path) -> None:
    server, folder = running
    with ReflexioClient(url_endpoint=server.url) as client:
        fill(client)
        before = set(rows_with_canary(folder))
        # The canaries are where they must be, so that this test can fail.
        assert before >= {"requests", "interactions", "learnings", "users", "windows", "receipts", "vectors"}
        assert files_with_canary(folder)
        assert is_verified(folder, None, tmp_path)[0] == 1

        done = client.clear_user_data(USER)
        assert rows_with_canary(folder) == []
        # A reader of the moment may hold the log; it is truncated when that is done.
        eventually(lambda: not files_with_canary(folder))
        assert done.receipt is not None
        counted = {name for name, count in done.receipt.counts.items() if count}
        assert counted >= {"interactions", "learnings", "lineage", "vectors", "interaction_words"}
        assert is_verified(folder, done, tmp_path) == (0, "ok      nothing of the user is left, and the receipt fits\n")
        assert [p.content for p in client.get_agent_playbooks(agent_version="v2").agent_playbooks]

    server.kill()
    assert files_with_canary(folder) == []
    server.start()
    assert rows_with_canary(folder) == []
    assert files_with_canary(folder) == []
    changed = json.loads(done.model_dump_json())
    changed["receipt"]["counts"]["interactions"] += 1
    code, words = is_verified(folder, ClearUserDataResponse.model_validate(changed), tmp_path)
    assert code == 1
    assert "The digest does not fit" in words


def test_a_kill_right_after_the_answer_brings_nothing_back(running: tuple[ServerProcess, Path]) -> None:
    server, folder = running
    with ReflexioClient(url_endpoint=server.url) as client:
        client.publish_interaction(USER, [turn(0)], agent_version="zqxversion", wait_for_response=True)
        client.publish_interaction(USER, [turn(1)], agent_version="zqxversion", force_extraction=True)
        client.clear_user_data(USER)
    server.kill()
    server.start()
    # A job that was planned before the erasure finds nothing, and ends without naming anybody.
    eventually(lambda: not rows_with_canary(folder))
    server.kill()
    server.start()
    assert files_with_canary(folder) == []
