"""Keys with scopes and owners on a real server: what each may do, and whom a decision is recorded under."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from reflexio.cli.app import app
from reflexio.client.sync import ReflexioClient
from reflexio.errors import NotAuthorised, NotPermitted
from reflexio.models.access import KeyScope
from reflexio.organisations import keys
from reflexio.storage import migrate
from reflexio.storage.sqlite import open_sqlite
from tests.builders import body, new_key, problem
from tests.conftest import Org, Running


def scoped(server: Running, org: Org, *scopes: KeyScope, owner: str = "") -> ReflexioClient:
    token = new_key(server.folder, org.id, scopes=frozenset(scopes), owner=owner)
    return ReflexioClient(url_endpoint=server.url, api_key=token, retries=0)


def test_a_publishing_key_can_neither_read_nor_approve_nor_raise_its_budget(server: Running, org: Org) -> None:
    with org.client() as admin:
        number = int(admin.add_agent_playbooks([{"content": "Ask for the parcel number"}]).ids[0])
    with scoped(server, org, KeyScope.PUBLISH) as client:
        client.publish_interaction("ann", body()["interaction_data_list"])
        refused: dict[str, Callable[[], Any]] = {
            "read": lambda: client.get_interactions("ann"),
            "review": lambda: client.review_agent_playbooks([number], playbook_status="approved"),
            "admin": lambda: client.update_config({"daily_token_budget": 10**9}),
        }
        for scope, call in refused.items():
            with pytest.raises(NotPermitted, match=f"scope '{scope}'") as error:
                call()
            assert isinstance(error.value, NotAuthorised)
            assert f"keys create --scopes {scope}" in str(error.value)


def test_a_publishing_key_cannot_add_what_is_approved_already(server: Running, org: Org) -> None:
    with scoped(server, org, KeyScope.PUBLISH) as client:
        client.add_agent_playbooks([{"content": "Ask first"}])
        with pytest.raises(NotPermitted, match="review"):
            client.add_agent_playbooks([{"content": "Pay at once", "playbook_status": "approved"}])
    with scoped(server, org, KeyScope.PUBLISH, KeyScope.REVIEW) as client:
        client.add_agent_playbooks([{"content": "Greet", "playbook_status": "approved"}])
    with org.client() as admin:
        rows = admin.get_agent_playbooks().agent_playbooks
        assert {row.content: row.playbook_status.value for row in rows} == {"Ask first": "pending", "Greet": "approved"}


def test_a_missing_scope_is_a_problem_that_names_it(server: Running, org: Org) -> None:
    token = new_key(server.folder, org.id, scopes=frozenset({KeyScope.READ}))
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}) as http:
        # Refused before the body is looked at, also where it is none.
        for sent in (body(), {}, {"unknown": 1}):
            answer = http.post("/api/publish_interaction", json=sent)
            assert "'publish'" in problem(answer, 403)
            assert "www-authenticate" not in answer.headers
        assert "'admin'" in problem(http.delete("/api/delete_all_interactions"), 403)
        assert http.get("/api/whoami").status_code == 200


def events(org: Org, number: int) -> list[dict[str, Any]]:
    with org.http() as http:
        answer = http.post("/api/get_learning_provenance", json={"kind": "agent_playbook", "id": str(number)})
        found: list[dict[str, Any]] = answer.json()["events"]
        return found


def test_the_owner_of_the_key_is_the_reviewer_whatever_the_caller_says(server: Running, org: Org) -> None:
    with scoped(server, org, KeyScope.PUBLISH, KeyScope.REVIEW, owner="eve") as client:
        number = int(client.add_agent_playbooks([{"content": "Ask for the parcel number"}]).ids[0])
        client.review_agent_playbooks([number], playbook_status="approved", reviewer="the director", reason="good")
        client.undo_review([number], reviewer="nobody")
        client.update_agent_playbook(number, content="Ask for its number", reviewer="the director")
        client.update_agent_playbook_status(number, playbook_status="rejected", reviewer="eve")
    recorded = [(each["op"], each["actor"], each.get("named_reviewer", "")) for each in events(org, number)]
    assert recorded == [
        ("reviewed", "eve", "the director"),
        ("undone", "eve", "nobody"),
        ("edited", "eve", "the director"),
        ("reviewed", "eve", ""),
    ]


def test_a_key_without_an_owner_names_the_reviewer(org: Org) -> None:
    with org.client() as client:
        number = int(client.add_agent_playbooks([{"content": "Ask for the parcel number"}]).ids[0])
        client.review_agent_playbooks([number], playbook_status="approved", reviewer="mallory")
    assert [(each["actor"], each.get("named_reviewer", "")) for each in events(org, number)] == [("mallory", "")]


def test_the_command_line_makes_and_shows_scopes_and_owners(tmp_path: Path) -> None:
    def run(*words: str) -> str:
        result = CliRunner().invoke(app, ["keys", *words, "--data", str(tmp_path)])
        assert result.exit_code == 0, result.output
        return result.output

    run("create", "--scopes", "Read, publish", "--owner", "eve", "--label", "desk")
    run("create")
    first, second = [line.split("\t") for line in run("list").splitlines()]
    assert first[4:] == ["publish,read", "eve", "desk"]
    assert second[4:] == ["all scopes", "-", ""]


@pytest.mark.parametrize("wrong", [["--scopes", "root"], ["--scopes", ","], ["--owner", "e\x1b[2Jve"]])
def test_a_key_that_makes_no_sense_is_not_created(tmp_path: Path, wrong: list[str]) -> None:
    command = [sys.executable, "-m", "reflexio", "keys", "create", *wrong, "--data", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (1, "")
    assert "Traceback" not in result.stderr


def test_keys_of_an_earlier_version_keep_all_scopes(tmp_path: Path) -> None:
    from sqlalchemy import create_engine

    path = tmp_path / "reflexio.db"
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        migrate._upgrade(connection, to="0001")
        row = "INSERT INTO keys (org_id, label, prefix, digest, created_at) VALUES ('acme', 'old', 'rfx_old', ?, 7)"
        connection.exec_driver_sql(row, (keys.digest("rfx_old-token"),))
    engine.dispose()
    asyncio.run(open_sqlite(path).close())
    listed = CliRunner().invoke(app, ["keys", "list", "--data", str(tmp_path)]).output
    assert listed.strip().split("\t")[4:] == ["all scopes", "-", "old"]
