"""The scope of a learning is shown, a filter and editable, in every call about learnings and in the review."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from reflexio.cli.app import app
from reflexio.client.sync import ReflexioClient
from tests.builders import problem
from tests.conftest import Org

TEXTS = {"always": "Tea is served hot.", "when_relevant": "Tea is served cold."}
ROWS: list[dict[str, Any]] = [{"content": text, "scope": scope} for scope, text in TEXTS.items()]
FINDERS: dict[str, Callable[[ReflexioClient, str], list[Any]]] = {
    "get_profiles": lambda c, scope: c.get_profiles("ann", scope=scope).user_profiles,
    "get_all_profiles": lambda c, scope: c.get_all_profiles(scope=scope).user_profiles,
    "search_user_profiles": lambda c, scope: c.search_user_profiles("ann", "tea", scope=scope).user_profiles,
    "get_user_playbooks": lambda c, scope: c.get_user_playbooks(scope=scope).user_playbooks,
    "search_user_playbooks": lambda c, scope: c.search_user_playbooks("tea", scope=scope).user_playbooks,
    "get_agent_playbooks": lambda c, scope: c.get_agent_playbooks(scope=scope).agent_playbooks,
    "search_agent_playbooks": lambda c, scope: (
        c.search_agent_playbooks("tea", scope=scope, playbook_status_filter="pending").agent_playbooks
    ),
    "search, profiles": lambda c, scope: c.search("tea", user_id="ann", scope=scope).profiles,
    "search, user playbooks": lambda c, scope: c.search("tea", user_id="ann", scope=scope).user_playbooks,
    "get_review_queue": lambda c, scope: [i.agent_playbook for i in c.get_review_queue(scope=scope).items],
}
BODIES: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "add_user_profile", {"user_profiles": [{"user_id": "ann", "content": "x", "scope": "sometimes"}]}),
    ("POST", "add_user_playbook", {"user_playbooks": [{"content": "x", "scope": "sometimes"}]}),
    ("POST", "add_agent_playbook", {"agent_playbooks": [{"content": "x", "scope": "sometimes"}]}),
    ("POST", "get_profiles", {"user_id": "ann", "scope": "sometimes"}),
    ("POST", "search", {"query": "x", "scope": "sometimes"}),
    ("POST", "get_review_queue", {"scope": "sometimes"}),
    ("PUT", "update_user_profile", {"user_id": "ann", "profile_id": "p", "scope": "sometimes"}),
    ("PUT", "update_user_playbook", {"user_playbook_id": 1, "scope": "sometimes"}),
    ("PUT", "update_agent_playbook", {"agent_playbook_id": 1, "scope": "sometimes"}),
]


@pytest.fixture
def learned(client: ReflexioClient) -> ReflexioClient:
    client.add_user_profile([{**row, "user_id": "ann", "profile_id": row["scope"]} for row in ROWS])
    client.add_user_playbook([{**row, "user_id": "ann"} for row in ROWS])
    client.add_agent_playbooks(ROWS)
    return client


@pytest.fixture
def command(org: Org, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    monkeypatch.setenv("REFLEXIO_URL", org.url)
    monkeypatch.setenv("REFLEXIO_API_KEY", org.token)

    def run(*words: object) -> str:
        done = CliRunner().invoke(app, ["review", *map(str, words)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    return run


@pytest.mark.parametrize("find", FINDERS.values(), ids=FINDERS)
def test_it_is_shown_and_a_filter(learned: ReflexioClient, find: Callable[[ReflexioClient, str], list[Any]]) -> None:
    for scope, text in TEXTS.items():
        assert [(row.content, row.scope.value) for row in find(learned, scope)] == [(text, scope)]
    assert len(find(learned, None)) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize("written", ["always", "Always", "when relevant", "when-relevant", "WHEN_RELEVANT"])
def test_it_is_written_in_several_ways(client: ReflexioClient, written: str) -> None:
    client.add_user_playbook([{"content": "x", "scope": written}])
    (row,) = client.get_user_playbooks().user_playbooks
    assert row.scope.value == written.lower().replace(" ", "_").replace("-", "_")


@pytest.mark.parametrize(("method", "path", "sent"), BODIES, ids=[row[1] for row in BODIES])
def test_another_word_is_named(http: httpx.Client, method: str, path: str, sent: dict[str, Any]) -> None:
    assert "scope" in problem(http.request(method, f"/api/{path}", json=sent), 422)


def test_it_is_changed_and_nothing_else(learned: ReflexioClient) -> None:
    learned.update_user_profile("ann", "always", scope="when_relevant")
    (playbook,) = FINDERS["get_user_playbooks"](learned, "always")
    learned.update_user_playbook(playbook.user_playbook_id, scope="when_relevant")
    (rule,) = FINDERS["get_agent_playbooks"](learned, "always")
    learned.update_agent_playbook(rule.agent_playbook_id, scope="when_relevant")
    for name in ("get_all_profiles", "get_user_playbooks", "get_agent_playbooks"):
        assert sorted(row.content for row in FINDERS[name](learned, "when_relevant")) == sorted(TEXTS.values())
        assert FINDERS[name](learned, "always") == []


def test_a_change_of_other_fields_keeps_it(learned: ReflexioClient) -> None:
    learned.update_user_profile("ann", "always", content="Prefers coffee.")
    (profile,) = FINDERS["get_profiles"](learned, "always")
    assert profile.content == "Prefers coffee."


def test_undoing_a_decision_restores_it(learned: ReflexioClient) -> None:
    (rule,) = FINDERS["get_agent_playbooks"](learned, "always")
    number = rule.agent_playbook_id
    learned.update_agent_playbook(number, scope="when_relevant", playbook_status="approved")
    assert FINDERS["get_agent_playbooks"](learned, "always") == []
    learned.undo_review([number])
    (restored,) = FINDERS["get_agent_playbooks"](learned, "always")
    assert (restored.agent_playbook_id, restored.playbook_status.value) == (number, "pending")


def test_the_context_follows_a_change(learned: ReflexioClient) -> None:
    assert TEXTS["always"] in learned.get_context(user_id="ann").context
    learned.update_user_profile("ann", "always", scope="when_relevant")
    (playbook,) = FINDERS["get_user_playbooks"](learned, "always")
    learned.update_user_playbook(playbook.user_playbook_id, scope="when_relevant")
    assert learned.get_context(user_id="ann").context == ""


def test_the_review_in_the_terminal(learned: ReflexioClient, command: Callable[..., str]) -> None:
    listed = command("list", "--scope", "always")
    assert TEXTS["always"] in listed
    assert TEXTS["when_relevant"] not in listed
    number = int(listed.split("\t")[0])
    assert "Scope: always" in command("show", number)
    command("edit", number, "--scope", "when relevant")
    assert "Scope: when relevant" in command("show", number)
    assert command("--scope", "always") == "Nothing waits for a decision.\n"
