"""Generations, operations, stalls and usage on a real server, through the client."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from reflexio.client.sync import ReflexioClient
from reflexio.errors import InvalidRequest, NotFound, ServerUnreachable
from reflexio.jobs import operations, token_budget
from reflexio.learning import stall
from reflexio.models.extraction import Spend
from reflexio.models.learning import Status
from reflexio.models.operation import Operation, OperationStatusInfo
from reflexio.ports.storage import Tx
from tests.builders import name, on_database, problem
from tests.conftest import Org, Running, StartServer

RERUN = "profile_generation"
Write = Callable[[Callable[[Tx], object]], object]


def now() -> int:
    return int(time.time())


@pytest.fixture
def write(server: Running, org: Org) -> Write:
    """Writes as the background does, in another process than the server's."""

    def act(fn: Callable[[Tx], object]) -> object:
        return on_database(server.folder, lambda database: database.of(org.id).write(fn))

    return act


def begin(operation_id: str) -> Callable[[Tx], object]:
    return lambda tx: operations.begin(tx, RERUN, operation_id, {"user_id": "ann"}, now(), total_users=2)


# --- generations


def add_profiles(client: ReflexioClient, *users: str) -> None:
    rows = [
        {"user_id": user, "content": f"{user} {status.value}", "status": status}
        for user in users
        for status in (Status.CURRENT, Status.PENDING, Status.ARCHIVED)
    ]
    client.add_user_profile(rows)


def profiles(client: ReflexioClient, user: str) -> dict[str, list[str]]:
    """The contents by status, from the cache or not, as a user would ask."""
    found = {each: client.get_profiles(user, status_filter=[each]).user_profiles for each in list(Status)[:3]}
    return {status.value: [row.content for row in rows] for status, rows in found.items()}


def test_upgrading_a_users_profiles_touches_nobody_else(client: ReflexioClient) -> None:
    add_profiles(client, "ann", "bob")
    before = profiles(client, "bob")
    profiles(client, "ann")

    response = client.upgrade_profiles(user_id="ann")

    assert response.success
    assert (response.profiles_promoted, response.profiles_archived, response.profiles_deleted) == (1, 1, 1)
    assert profiles(client, "ann") == {"current": ["ann pending"], "pending": [], "archived": ["ann current"]}
    assert profiles(client, "bob") == before


def test_with_nothing_pending_an_upgrade_says_so_and_changes_nothing(client: ReflexioClient) -> None:
    client.add_user_profile([{"user_id": "ann", "content": "here"}])
    response = client.upgrade_profiles(user_id="ann")
    assert not response.success
    assert response.message == "No pending items found to upgrade"
    assert (response.profiles_promoted, response.profiles_archived, response.profiles_deleted) == (0, 0, 0)
    assert profiles(client, "ann")["current"] == ["here"]
    assert not client.upgrade_user_playbooks(agent_version="v1").success
    assert client.downgrade_profiles().message == "No archived items found to downgrade"


def test_by_default_the_client_leaves_users_alone_who_have_nothing_pending(client: ReflexioClient) -> None:
    client.add_user_profile([{"user_id": "bob", "content": "stays"}])
    add_profiles(client, "ann")
    assert client.upgrade_profiles().profiles_archived == 1
    assert profiles(client, "bob")["current"] == ["stays"]


def test_the_wires_own_default_archives_everybodys(client: ReflexioClient, http: httpx.Client) -> None:
    client.add_user_profile([{"user_id": "bob", "content": "goes"}])
    add_profiles(client, "ann")
    sent = {"user_id": None, "profile_ids": None, "only_affected_users": False}
    assert http.post("/api/upgrade_all_profiles", json=sent).json() == {
        "success": True,
        "profiles_archived": 2,
        "profiles_promoted": 1,
        "profiles_deleted": 1,
        "message": "Promoted 1 profile(s)",
    }


def test_only_the_named_profiles_are_upgraded(client: ReflexioClient) -> None:
    client.add_user_profile(
        [{"user_id": "ann", "profile_id": each, "content": each, "status": "pending"} for each in "abc"]
    )
    assert client.upgrade_profiles(profile_ids=["a", "unknown"]).profiles_promoted == 1
    assert profiles(client, "ann")["current"] == ["a"]
    assert not client.upgrade_profiles(profile_ids=[]).success


def test_a_downgrade_takes_the_upgrade_back(client: ReflexioClient) -> None:
    add_profiles(client, "ann")
    client.upgrade_profiles("ann")
    response = client.downgrade_profiles("ann")
    assert (response.success, response.profiles_restored, response.profiles_demoted) == (True, 1, 1)
    assert profiles(client, "ann") == {"current": ["ann current"], "pending": [], "archived": ["ann pending"]}


def add_playbooks(client: ReflexioClient, version: str, playbook: str = "playbook") -> None:
    common: dict[str, Any] = {"user_id": "ann", "agent_version": version, "playbook_name": playbook}
    client.add_user_playbook(
        [
            {**common, "content": f"{version} {playbook} {status.value}", "status": status}
            for status in (Status.CURRENT, Status.PENDING, Status.ARCHIVED)
        ]
    )


def current_playbooks(client: ReflexioClient) -> set[str]:
    return {each.content for each in client.get_user_playbooks().user_playbooks}


def test_upgrading_user_playbooks_keeps_to_version_and_type(client: ReflexioClient) -> None:
    for version, playbook in (("v1", "playbook"), ("v1", "tone"), ("v2", "playbook")):
        add_playbooks(client, version, playbook)

    response = client.upgrade_user_playbooks(agent_version="v1", playbook_name="tone")

    assert response.success
    counts = response.user_playbooks_promoted, response.user_playbooks_archived, response.user_playbooks_deleted
    assert counts == (1, 1, 1)
    assert current_playbooks(client) == {"v1 playbook current", "v1 tone pending", "v2 playbook current"}
    assert client.upgrade_user_playbooks(agent_version="v1").user_playbooks_archived == 2
    assert current_playbooks(client) == {"v1 playbook pending", "v2 playbook current"}
    back = client.downgrade_user_playbooks(agent_version="v1")
    assert (back.user_playbooks_restored, back.user_playbooks_demoted) == (2, 1)
    assert current_playbooks(client) == {"v1 playbook current", "v1 tone pending", "v2 playbook current"}


def test_new_user_playbooks_may_join_those_that_are_current(client: ReflexioClient) -> None:
    add_playbooks(client, "v1")
    response = client.upgrade_user_playbooks("v1", archive_current=False)
    assert (response.user_playbooks_promoted, response.user_playbooks_archived) == (1, 0)
    assert current_playbooks(client) == {"v1 playbook current", "v1 playbook pending"}


@pytest.mark.parametrize("blank", ["", " "])
def test_a_blank_user_is_not_everybody(client: ReflexioClient, blank: str) -> None:
    add_profiles(client, "ann")
    with pytest.raises(InvalidRequest, match="user_id"):
        client.upgrade_profiles(blank)
    assert profiles(client, "ann")["current"] == ["ann current"]


# --- operations


def test_an_operation_can_be_asked_after(client: ReflexioClient, http: httpx.Client, write: Write) -> None:
    none = client.get_operation_status(RERUN)
    assert (none.success, none.operation_status) == (False, None)
    write(begin("a"))
    write(lambda tx: operations.record_user(tx, "a", "ann", now(), stats={"total_generated": 3}))

    told = client.get_operation_status(RERUN)

    assert told.success
    assert told.operation_status is not None
    assert told.operation_status.request_params == {"user_id": "ann", "operation_id": "a"}
    assert told.operation_status.progress_percentage == 50
    raw = http.get("/api/get_operation_status", params={"service_name": RERUN}).json()["operation_status"]
    assert (raw["status"], raw["stats"], raw["processed_user_ids"]) == ("in_progress", {"total_generated": 3}, ["ann"])
    assert "completed_at" not in raw


def test_cancelling_reaches_the_running_work(client: ReflexioClient, write: Write) -> None:
    assert client.cancel_operation().cancelled_services == []
    write(begin("a"))
    assert client.cancel_operation("playbook_generation").cancelled_services == []
    assert client.cancel_operation(RERUN).cancelled_services == [RERUN]
    operation = write(lambda tx: operations.progress(tx, "a", now()))
    assert isinstance(operation, Operation)
    assert operation.cancel_requested


def test_following_tells_live_progress_and_ends_by_itself(client: ReflexioClient, write: Write) -> None:
    odd = "a\u2028b\x85c"
    write(begin("a"))
    seen: list[OperationStatusInfo] = []
    followed = client.follow_operation("a")
    seen.append(next(followed))
    write(lambda tx: operations.record_user(tx, "a", odd, now()))
    seen.append(next(followed))
    write(lambda tx: operations.finish(tx, "a", now()))
    seen += followed
    assert [(each.status.value, each.processed_user_ids) for each in seen] == [
        ("in_progress", []),
        ("in_progress", [odd]),
        ("completed", [odd]),
    ]
    assert [each.status.value for each in client.follow_operation("a")] == ["completed"]


def test_events_are_a_stream_that_nobody_keeps(http: httpx.Client, write: Write) -> None:
    write(begin("a"))
    write(lambda tx: operations.stop(tx, "a", now()))
    answer = http.get("/api/operations/a/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.text.startswith("event: progress\ndata: {")
    assert answer.text.endswith("}\n\n")


def test_an_unknown_operation_is_a_404(client: ReflexioClient, http: httpx.Client) -> None:
    assert "no operation 'a b'" in problem(http.get("/api/operations/a b/events"), 404)
    with pytest.raises(NotFound, match="no operation 'nothing'"):
        list(client.follow_operation("nothing"))


def test_nobody_follows_or_cancels_the_work_of_another(make_org: Callable[[], Org], write: Write) -> None:
    write(begin("a"))
    with make_org().client() as stranger:
        with pytest.raises(NotFound):
            list(stranger.follow_operation("a"))
        assert stranger.cancel_operation().cancelled_services == []
        assert not stranger.get_operation_status(RERUN).success


def test_a_follower_does_not_keep_the_server_from_stopping(start_server: StartServer, tmp_path: Path) -> None:
    server = start_server()
    on_database(tmp_path, lambda database: database.of("default").write(begin("a")))
    with ReflexioClient(url_endpoint=server.url, retries=0) as client:
        followed = client.follow_operation("a")
        next(followed)
        began = time.monotonic()
        server.stop()
        # Without a word to the follower, it would be the 20 seconds that open connections are given.
        assert time.monotonic() - began < 10
        with pytest.raises(ServerUnreachable):
            next(followed)


# --- stalls


def test_a_stall_is_told_and_acknowledged(client: ReflexioClient, http: httpx.Client, write: Write) -> None:
    assert http.get("/stall_state").json() == {"stalled": False, "notified_in_cc": False}
    assert not client.mark_stall_notified().notified_in_cc
    write(lambda tx: stall.enter(tx, "billing_error", "402: pay the bill", 1_790_000_000))

    state = client.get_stall_state()

    assert (state.stalled, state.reason, state.error_message) == (True, "billing_error", "402: pay the bill")
    assert http.get("/stall_state").json()["stalled_at"] == "2026-09-21T14:13:20Z"
    for _ in range(2):
        assert client.mark_stall_notified().notified_in_cc
    assert client.get_stall_state().notified_in_cc
    write(stall.clear)
    assert not client.get_stall_state().stalled


def test_a_stall_needs_a_key_and_is_its_organisations_own(make_org: Callable[[], Org], org: Org, write: Write) -> None:
    write(lambda tx: stall.enter(tx, "auth_error", "401", now()))
    problem(httpx.get(f"{org.url}/stall_state"), 401)
    problem(httpx.post(f"{org.url}/stall_state/notified"), 401)
    with make_org().client() as stranger:
        assert not stranger.get_stall_state().stalled


# --- spend


def test_usage_is_told_by_day_operation_and_model(client: ReflexioClient, write: Write) -> None:
    client.update_config({"daily_token_budget": 1000})
    write(lambda tx: token_budget.record(tx, Spend("openai:some-model", 2, 900, 99), "extract", now()))
    told = client.get_usage(days=1)
    (entry,) = told.usage
    assert (entry.operation, entry.model, entry.calls) == ("extract", "openai:some-model", 2)
    assert (told.tokens_today, told.daily_token_budget, told.budget_used_up) == (999, 1000, False)
    client.update_config({"daily_token_budget": 999})
    assert client.get_usage().budget_used_up


@pytest.mark.parametrize("days", [0, -1, 367])
def test_days_have_bounds(client: ReflexioClient, days: int) -> None:
    with pytest.raises(InvalidRequest, match="days"):
        client.get_usage(days)


def test_a_budget_is_a_setting_that_other_changes_keep(client: ReflexioClient) -> None:
    client.update_config({"daily_token_budget": 7})
    client.update_config({"agent_context_prompt": name()})
    config = client.get_config()
    assert config.daily_token_budget == 7
    config.daily_token_budget = None
    client.set_config(config)
    assert client.get_config().daily_token_budget is None
    with pytest.raises(InvalidRequest, match="daily_token_budget"):
        client.update_config({"daily_token_budget": -1})
