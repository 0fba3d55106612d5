"""`reflexio review` decides about playbooks on a real server, by commands and by questions."""

import pytest
from typer.testing import CliRunner

from reflexio.cli import review
from reflexio.cli.app import app
from reflexio.client.sync import ReflexioClient
from tests.conftest import Org

ASK = "Ask for the order number."
TRIGGER = "A customer asks where their parcel is"


@pytest.fixture(autouse=True)
def _at_the_server(org: Org, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLEXIO_URL", org.url)
    monkeypatch.setenv("REFLEXIO_API_KEY", org.token)


def command(*words: object, typed: str = "") -> str:
    done = CliRunner().invoke(app, ["review", *map(str, words)], input=typed, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def propose(client: ReflexioClient, *contents: str) -> list[int]:
    rows = [{"content": each, "trigger": TRIGGER, "agent_version": "v1"} for each in contents]
    return [int(each) for each in client.add_agent_playbooks(rows).ids]


def decisions(client: ReflexioClient) -> dict[str, str]:
    rows = client.get_agent_playbooks(force_refresh=True).agent_playbooks
    return {row.content: row.playbook_status.value for row in rows}


def test_an_empty_queue_says_so() -> None:
    assert command() == command("list") == "Nothing waits for a decision.\n"


def test_what_waits_is_listed_and_shown_with_evidence_and_dissent(client: ReflexioClient) -> None:
    said = [ASK, "Always ask for the order number.", "Do not ask for the order number."]
    taught = [
        {"user_id": f"u{n}", "agent_version": "v1", "trigger": TRIGGER, "content": each} for n, each in enumerate(said)
    ]
    client.add_user_playbook(taught)
    client.run_playbook_aggregation(agent_version="v1", wait_for_response=True)
    (made,) = client.get_agent_playbooks().agent_playbooks
    listed = command("list", "--agent-version", "v1")
    assert f"{made.agent_playbook_id}\tplaybook\ttaught by 2 users; 1 disagrees\t{TRIGGER}: {made.content}" in listed
    shown = command("show", made.agent_playbook_id)
    assert "Support: taught by 2 users, in 2 playbooks" in shown
    assert "  + u1: Always ask for the order number." in shown
    assert "Disagreement:\n  - u2: Do not ask for the order number." in shown


def test_decisions_in_bulk_with_who_and_why_and_back_again(client: ReflexioClient) -> None:
    one, two, three = propose(client, "One", "Two", "Three")
    assert "2 agent playbook(s) are approved" in command("approve", one, two, "--reviewer", "eve", "--reason", "clear")
    command("reject", three, "--reviewer", "eve")
    assert decisions(client) == {"One": "approved", "Two": "approved", "Three": "rejected"}
    assert "reviewed eve approved clear" in command("show", one)
    command("undo", one, three)
    assert decisions(client) == {"One": "pending", "Two": "approved", "Three": "pending"}


def test_edit_and_approve_at_once(client: ReflexioClient) -> None:
    (number,) = propose(client, "Vague")
    command("edit", number, "--content", "Exact", "--approve", "--reviewer", "eve")
    assert decisions(client) == {"Exact": "approved"}
    command("undo", number)
    assert decisions(client) == {"Vague": "pending"}


def test_a_wording_that_is_not_given_is_asked_for(client: ReflexioClient) -> None:
    (number,) = propose(client, "Vague")
    command("edit", number, typed="Vague no more\n")
    assert decisions(client) == {"Vague no more": "pending"}


def test_in_a_terminal_it_asks_about_one_after_the_other(
    client: ReflexioClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    propose(client, "One", "Two", "Three", "Four", "Five")
    monkeypatch.setattr(review, "is_terminal", lambda: True)
    seen = command("--reviewer", "eve", typed="a\nr\ntoo vague\ne\nBetter!\n\nq\n")
    assert "── 1 of 5 ──" in seen
    assert sorted(decisions(client).values()) == ["approved", "approved", "pending", "pending", "rejected"]
    assert decisions(client)["Better!"] == "approved"


def test_what_is_not_there_is_one_line(org: Org) -> None:
    from reflexio.errors import NotFound

    with pytest.raises(NotFound, match="no agent playbook"):
        command("approve", 999_999)
