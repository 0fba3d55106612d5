"""The samples that read, analyse and review playbooks run as printed, on rows that were added by hand."""

import time
from collections import defaultdict
from typing import Any

import pytest

from reflexio import PlaybookStatus, Status
from reflexio.client.sync import ReflexioClient
from tests.acceptance import playbook_samples as samples
from tests.acceptance.test_samples import run

GIVEN = {"Status": Status, "PlaybookStatus": PlaybookStatus, "defaultdict": defaultdict}
NEED_ROWS = {"VERSIONS"}
"""`max` of nothing raises, as it is printed."""


@pytest.fixture
def filled(client: ReflexioClient) -> ReflexioClient:
    now = int(time.time())

    def row(name: str, version: str, number: int, **more: Any) -> dict[str, Any]:
        content = f"{name} {version} {number}"
        made = {"playbook_name": name, "agent_version": version, "content": content, "created_at": now - number}
        return {**made, "user_id": "ann", "request_id": f"r{number // 2}", **more}

    client.add_user_playbook([row("response_quality", "v2.1.0", n) for n in range(12)])
    client.add_user_playbook([row("response_quality", "v2.0.0", n, created_at=now - 3 * 86_400) for n in range(3)])
    client.add_user_playbook([row("pain_points", "v2.1.0", 0), row("pain_points", "v2.1.0", 1, status="pending")])
    client.add_user_playbook([row("pain_points", "v2.1.0", 2, status="archived")] * 2)
    client.add_agent_playbooks(
        [
            {"content": "Answer in one step", "playbook_name": "response_quality", "agent_version": "v2.1.0"},
            {
                "content": "Show the button",
                "playbook_name": "pain_points",
                "playbook_status": "approved",
                "playbook_metadata": "12 users",
            },
            {"content": "Hide the button", "playbook_name": "pain_points", "playbook_status": "rejected"},
        ]
    )
    return client


def printed(capsys: pytest.CaptureFixture[str], sample: str, client: ReflexioClient) -> tuple[str, dict[str, Any]]:
    names = run(sample, client=client, **GIVEN)
    return capsys.readouterr().out, names


@pytest.mark.parametrize("sample", sorted(name for name in vars(samples) if name.isupper() and name not in NEED_ROWS))
def test_with_nothing_stored_it_says_so(client: ReflexioClient, sample: str) -> None:
    run(getattr(samples, sample), client=client, **GIVEN)


def test_the_loops_print_every_field(filled: ReflexioClient, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = printed(capsys, samples.ALL_USER_PLAYBOOKS, filled)
    assert "Total user playbooks: 16" in out
    assert out.index("response_quality v2.1.0 0") < out.index("response_quality v2.0.0 0"), "newest first"
    assert "Request ID: r5\nContent: response_quality v2.1.0 11" in out
    out, _ = printed(capsys, samples.USER_PLAYBOOKS_BY_NAME, filled)
    assert "Found 15 response quality playbook entries" in out
    out, _ = printed(capsys, samples.ALL_AGENT_PLAYBOOKS, filled)
    assert "Total agent playbooks: 3" in out
    assert "Status: approved\nContent: Show the button\nMetadata: 12 users" in out
    out, _ = printed(capsys, samples.AGENT_PLAYBOOKS_BY_NAME, filled)
    assert "[rejected] Hide the button" in out
    assert "[approved] Show the button" in out
    assert "Answer in one step" not in out


def test_filtering_by_status_gives_disjoint_sets(filled: ReflexioClient, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, samples.USER_PLAYBOOKS_BY_STATUS, filled)[0] == "Current: 16\nPending: 1\nArchived: 2\n"


def test_the_cache_gives_the_same_until_it_is_refreshed(
    filled: ReflexioClient, capsys: pytest.CaptureFixture[str]
) -> None:
    names = printed(capsys, samples.CACHE, filled)[1]
    assert names["playbooks"] == names["cached_playbooks"] == names["fresh_playbooks"]
    assert len(names["playbooks"].agent_playbooks) == 1


def test_analyses_count_what_is_there(filled: ReflexioClient, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = printed(capsys, samples.VOLUME, filled)
    assert out == "Playbook Distribution by Type:\n  response_quality: 15 entries\n  pain_points: 1 entries\n"
    out, _ = printed(capsys, samples.VERSIONS, filled)
    assert "  v2.0.0: 3 entries\n  v2.1.0: 12 entries\n\nMost entries: v2.1.0 (12 entries)" in out
    out, names = printed(capsys, samples.TEMPORAL, filled)
    assert sum(names["daily_playbooks"].values()) == 16
    assert len(out.splitlines()) == 8
    out, _ = printed(capsys, samples.STATUSES, filled)
    assert "  pending: 1 (33.3%)" in out
    assert "  approved: 1 (33.3%)" in out


def test_production_patterns_report_what_is_there(filled: ReflexioClient, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = printed(capsys, samples.HEALTH, filled)
    assert out == "Playbook health OK: 13 playbook entries in last 24h\n"
    out, _ = printed(capsys, samples.REPORT, filled)
    assert "Total (all time): 15\n  Recent (30 days): 15\n  Daily average: 0.5" in out
    assert "BY AGENT VERSION:\n  v2.1.0: 12\n  v2.0.0: 3" in out
    out, _ = printed(capsys, samples.ONE_VERSION, filled)
    assert "Total entries: 13" in out
    assert "response_quality: 12 entries\n    Sample: response_quality v2.1.0 0..." in out
    out, _ = printed(capsys, samples.IMPROVEMENT, filled)
    assert "1. [pain_points]\n   Show the button\n   Metadata: 12 users" in out
    assert "2. [" not in out
    out, names = printed(capsys, samples.AB_TEST, filled)
    assert names["results"] == {
        "version_a": {"version": "v2.0.0", "count": 3},
        "version_b": {"version": "v2.1.0", "count": 12},
    }
    assert "v2.0.0 unique requests: 2\nv2.1.0 unique requests: 6" in out


def test_the_weekly_review_lists_what_waits_for_a_decision(
    filled: ReflexioClient, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = printed(capsys, samples.WEEKLY_REVIEW, filled)
    assert out == "Playbooks pending review: 1\n\n[response_quality] Answer in one step\nAgent Version: v2.1.0\n"
    (waiting,) = filled.get_agent_playbooks(status_filter=[Status.PENDING]).agent_playbooks
    filled.update_agent_playbook_status(waiting.agent_playbook_id, playbook_status="approved")
    assert printed(capsys, samples.WEEKLY_REVIEW, filled)[0] == "Playbooks pending review: 0\n"
