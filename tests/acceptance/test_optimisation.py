"""Optimisation end to end: a real server, a real webhook and a real script, a scripted model over HTTP."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from reflexio.cli.app import app
from reflexio.client.sync import ReflexioClient
from reflexio.errors import InvalidRequest, NotFound
from reflexio.models.learning import PlaybookStatus, Status
from reflexio.models.optimisation import PlaybookOptimizationJob
from reflexio.models.playbook import AgentPlaybook
from reflexio.server.process import running_server
from tests import parcels
from tests.builders import eventually, name, new_key, problem
from tests.conftest import AT_HOME, Org, Running, StartServer
from tests.scripted_model import Answer, Asked, ScriptedModel, scripted_model
from tests.webhook import Raw, Respond, webhook


def critic(asked: Asked) -> Answer:
    """The judge and the rewriter; whoever learns finds nothing."""
    if "verdict" in asked.wants:
        return parcels.opinion(asked.case)
    if "content" in asked.wants and "reason" in asked.wants:
        return parcels.better(asked.case)
    if "rule" in asked.wants:
        return {"rule": {"trigger": parcels.TRIGGER, "content": parcels.INCUMBENT, "rationale": "Asked."}}
    return {each: [] for each in asked.schema.get("required", ())}


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with scripted_model(otherwise=critic) as model:
        yield model


@pytest.fixture(scope="module")
def server(model: ScriptedModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("optimising")
    new_key(folder, "first")
    # Assistant scripts of tests are in folders of theirs below this one.
    scripts = {"REFLEXIO_SCRIPTS": str(tmp_path_factory.getbasetemp())}
    with running_server(folder, {**with_model(model), **scripts}) as url:
        yield Running(url, folder)


def with_model(model: ScriptedModel) -> dict[str, str]:
    model_at = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "not-a-real-key"}
    return {"REFLEXIO_MODEL": "openai:scripted", **model_at, **AT_HOME}


def pending_playbook(client: ReflexioClient, windows: int = 3) -> int:
    """A pending agent playbook whose source windows are conversations of as many users."""
    cited = []
    for number in range(windows):
        user = name()
        client.publish_interaction(user, parcels.conversation(number), wait_for_response=True)
        turns = sorted(turn.interaction_id for turn in client.get_interactions(user).interactions)
        cited.append(turns[2:])
    row = {"content": parcels.INCUMBENT, "trigger": parcels.TRIGGER, "source_windows": parcels.windows(cited)}
    (made,) = client.add_agent_playbooks([row]).ids
    return int(made)


def configure(client: ReflexioClient, **settings: Any) -> None:
    given = {"enabled": True, "webhook_backoff_base_seconds": 0.0, "webhook_max_retries": 0, **settings}
    client.update_config({"playbook_optimizer_config": given})


def row(client: ReflexioClient, number: int | None) -> AgentPlaybook:
    assert number is not None
    everything = [each.value for each in Status]
    found = client.get_agent_playbooks(agent_playbook_id=number, status_filter=everything, force_refresh=True)
    (only,) = found.agent_playbooks
    return only


def program(folder: Path, source: str, *, mode: int = 0o755) -> str:
    path = folder / name("assistant")
    path.write_text(source)
    path.chmod(mode)
    return str(path)


def assert_adopted(client: ReflexioClient, number: int, job: PlaybookOptimizationJob | None) -> None:
    assert job is not None
    assert job.status == "completed", job.decision_reason
    before, after = row(client, number), row(client, job.successor_target_id)
    assert (before.status, before.content) == (Status.SUPERSEDED, parcels.INCUMBENT)
    assert (after.status, after.playbook_status) == (Status.CURRENT, PlaybookStatus.PENDING)
    assert after.content == job.winner_content != parcels.INCUMBENT
    assert all(deed in after.content for deed in parcels.DEEDS)
    assert after.source_windows == before.source_windows


# The whole way


def test_a_webhook_ends_with_a_pending_successor_whose_content_is_the_winner(client: ReflexioClient) -> None:
    with webhook() as hook:
        configure(client, webhook_url=hook.url, webhook_auth_header="Basic c2VjcmV0")
        number = pending_playbook(client)
        done = client.run_playbook_optimization(number, wait_for_response=True)
    assert_adopted(client, number, done.job)
    assert done.job is not None
    assert len(hook.requests) == done.job.assistant_calls
    for sent, headers in zip(hook.requests, hook.headers, strict=True):
        assert headers["authorization"] == "Basic c2VjcmV0"
        assert sent.keys() == {"messages", "playbooks"}
        assert all(each.keys() == {"role", "content"} for each in sent["messages"])
        (playbook,) = sent["playbooks"]
        assert playbook.keys() == {"id", "content", "trigger"}
        assert (playbook["id"], playbook["trigger"]) == (number, parcels.TRIGGER)
    assert "c2VjcmV0" not in str(client.get_config().model_dump(context={"reveal": True}))
    found = client.search("a parcel is missing", entity_types=["agent_playbooks"])
    assert found.agent_playbooks == []


def test_a_script_ends_with_a_pending_successor_whose_content_is_the_winner(
    client: ReflexioClient, tmp_path: Path
) -> None:
    log = tmp_path / "calls.jsonl"
    path = program(tmp_path, parcels.script_source(sys.executable, str(log)))
    configure(client, assistant_script_path=path, assistant_script_args=["--quiet"])
    number = pending_playbook(client)
    done = client.run_playbook_optimization(number, wait_for_response=True)
    assert_adopted(client, number, done.job)
    sent = [json.loads(line) for line in log.read_text().splitlines()]
    assert all(each.keys() == {"messages", "playbooks"} for each in sent)
    assert done.job is not None
    assert len(sent) == done.job.assistant_calls


def test_jobs_can_be_listed_read_and_followed(client: ReflexioClient) -> None:
    with webhook() as hook:
        configure(client, webhook_url=hook.url)
        number = pending_playbook(client)
        told = client.run_playbook_optimization(number, dry_run=True)
        assert (told.job_id, hook.requests) == (None, [])
        begun = client.run_playbook_optimization(number, seed=11)
        assert begun.job_id is not None
        eventually(lambda: client.get_playbook_optimization(begun.job_id or 0, details=False).job.has_ended)
    shown = client.get_playbook_optimization(begun.job_id)
    assert (shown.job.seed, shown.job.target_id) == (11, number)
    assert told.estimate is not None
    assert shown.job.assistant_calls <= told.estimate.assistant_calls
    assert [each.candidate_index for each in shown.candidates] == [0, 1, 2]
    assert {each.verdict for each in shown.evaluations} == {"tie", "candidate"}
    assert shown.events[-1].event_type == "optimization_end"
    assert [job.job_id for job in client.get_playbook_optimizations().jobs] == [begun.job_id]
    assert client.cancel_playbook_optimization(begun.job_id).success is False


def test_nobody_sees_the_jobs_of_another(client: ReflexioClient, make_org: Callable[[], Org]) -> None:
    configure(client, webhook_url="http://127.0.0.1:9/")
    begun = client.run_playbook_optimization(pending_playbook(client), wait_for_response=True)
    assert begun.job_id is not None
    with make_org().client() as other, pytest.raises(NotFound):
        other.get_playbook_optimization(begun.job_id)


def test_it_starts_automatically_after_an_aggregation(client: ReflexioClient) -> None:
    """From three users who teach the same to a better wording of what they taught."""
    with webhook() as hook:
        configure(client, webhook_url=hook.url)
        for number in range(3):
            user = name()
            client.publish_interaction(
                user, parcels.conversation(number), agent_version="shop-1", wait_for_response=True
            )
            turns = sorted(turn.interaction_id for turn in client.get_interactions(user).interactions)
            taught = {"user_id": user, "agent_version": "shop-1", "trigger": parcels.TRIGGER}
            lesson = {"content": f"Always {parcels.DEEDS[0]} first.", "source_interaction_ids": turns[2:]}
            client.add_user_playbook([{**taught, **lesson}])
        client.run_playbook_aggregation("shop-1", wait_for_response=True)
        eventually(lambda: any(job.has_ended for job in client.get_playbook_optimizations().jobs))
        (job,) = client.get_playbook_optimizations().jobs
    assert job.started_by == "aggregation"
    assert_adopted(client, job.target_id, job)
    assert (job.estimate.train_windows, job.estimate.validation_windows) == (1, 2)


# Bad input: a clear state and reason on the job, and nothing is changed


SCRIPTS = {
    "exits 1": ("#!/bin/sh\necho no luck >&2\nexit 1\n", "ended with code 1: no luck"),
    "writes no JSON": ("#!/bin/sh\necho hello\n", "did not answer with JSON"),
    "writes no content": ("#!/bin/sh\necho '{\"text\": 1}'\n", 'no text under "content"'),
    "hangs": ("#!/bin/sh\nsleep 600 &\nsleep 600\n", "did not answer within 1 s"),
    "prints for ever": ("#!/bin/sh\nwhile :; do echo 0123456789012345678901234567890123456789; done\n", "longer than"),
}


@pytest.mark.parametrize("kind", SCRIPTS)
def test_a_script_that_fails_is_told_and_changes_nothing(client: ReflexioClient, tmp_path: Path, kind: str) -> None:
    source, why = SCRIPTS[kind]
    configure(client, assistant_script_path=program(tmp_path, source), webhook_timeout_seconds=1)
    number = pending_playbook(client)
    before = row(client, number)
    done = client.run_playbook_optimization(number, wait_for_response=True)
    assert (done.success, done.status) == (False, "failed")
    assert why in str(done.msg)
    assert row(client, number) == before


@pytest.mark.parametrize(("mode", "why"), [(0o644, "not executable"), (None, "missing")])
def test_a_script_that_cannot_be_started_is_not_saved_and_is_skipped_later(
    client: ReflexioClient, tmp_path: Path, mode: int | None, why: str
) -> None:
    path = Path(program(tmp_path, "#!/bin/sh\n"))

    def spoil() -> None:
        path.unlink() if mode is None else path.chmod(mode)

    configure(client, assistant_script_path=str(path))
    spoil()
    done = client.run_playbook_optimization(pending_playbook(client))
    assert (done.success, done.status) == (False, "skipped")
    assert why in str(done.msg)
    # What does not change the assistant can be saved, as the whole configuration is when a client writes it back.
    client.update_config({"playbook_optimizer_config": {"enabled": False}, "window_size": 12})
    with pytest.raises(InvalidRequest, match=why):
        configure(client, assistant_script_path=str(path), assistant_script_args=["-x"])


def save_script(url: str, path: str, key: str = "") -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    settings = {"playbook_optimizer_config": {"assistant_script_path": path}}
    return httpx.post(f"{url}/api/set_config", json=settings, headers=headers)


def test_a_server_without_keys_on_this_machine_runs_any_script_until_a_key_exists(
    model: ScriptedModel, start_server: StartServer, tmp_path: Path
) -> None:
    data, mark = tmp_path / "data", tmp_path / "ran"
    path = program(tmp_path, f"#!/bin/sh\necho ran >> {mark}\nexit 1\n")
    url = start_server(data, **with_model(model)).url
    with ReflexioClient(url_endpoint=url, retries=0) as client:
        configure(client, assistant_script_path=path)
        number = pending_playbook(client)
        assert client.run_playbook_optimization(number, wait_for_response=True).status == "failed"
    ran = mark.read_text()
    assert ran
    token = new_key(data, "default")
    with ReflexioClient(url_endpoint=url, api_key=token, retries=0) as client:
        skipped = client.run_playbook_optimization(number)
        assert (skipped.status, "REFLEXIO_SCRIPTS" in str(skipped.msg)) == ("skipped", True)
        assert mark.read_text() == ran
        # The rest of the configuration can still be changed.
        client.update_config({"window_size": 12})
    assert "REFLEXIO_SCRIPTS" in problem(save_script(url, "/bin/echo", token), 422)
    with ReflexioClient(url_endpoint=url, api_key=token, retries=0) as client:
        assert client.get_config().playbook_optimizer_config.assistant_script_path == path


@pytest.mark.parametrize("environment", [{"REFLEXIO_API_KEY": "operator"}, {"REFLEXIO_HOST": "0.0.0.0"}])  # noqa: S104
def test_a_server_with_a_key_or_another_address_saves_no_script(
    start_server: StartServer, tmp_path: Path, environment: dict[str, str]
) -> None:
    url = start_server(tmp_path / "data", **environment).url
    key = environment.get("REFLEXIO_API_KEY", "")
    assert "REFLEXIO_SCRIPTS" in problem(save_script(url, "/bin/echo", key), 422)


def test_with_a_key_only_scripts_of_the_operators_folder_are_saved(start_server: StartServer, tmp_path: Path) -> None:
    folder = tmp_path / "scripts"
    folder.mkdir()
    inside = program(folder, "#!/bin/sh\n")
    (folder / "echo").symlink_to("/bin/echo")
    url = start_server(tmp_path / "data", REFLEXIO_SCRIPTS=str(folder), REFLEXIO_API_KEY="operator").url
    for path in ("/bin/echo", f"{folder}/echo", f"{folder}/../data/reflexio.db", f"{folder}/../../../../bin/echo"):
        assert "REFLEXIO_SCRIPTS" in problem(save_script(url, path, "operator"), 422)
    assert save_script(url, inside, "operator").status_code == 200


def redirecting(_: dict[str, Any]) -> Raw:
    return Raw(302, headers={"Location": "/elsewhere"})


HOOKS: dict[str, tuple[Respond, str]] = {
    "answers 500": (lambda _: Raw(500), "HTTP 500"),
    "redirects": (redirecting, "redirects (HTTP 302)"),
    "talks nonsense": (lambda _: Raw(body=b"<html>"), "did not answer with JSON"),
    "talks for ever": (lambda _: Raw(body=b"x" * 2_000_000), "longer than"),
}


@pytest.mark.parametrize("kind", HOOKS)
def test_a_webhook_that_fails_is_told_and_changes_nothing(client: ReflexioClient, kind: str) -> None:
    respond, why = HOOKS[kind]
    with webhook(respond) as hook:
        configure(client, webhook_url=hook.url)
        number = pending_playbook(client)
        before = row(client, number)
        done = client.run_playbook_optimization(number, wait_for_response=True)
    assert (done.success, done.status, len(hook.requests)) == (False, "failed", 1)
    assert why in str(done.msg)
    assert row(client, number) == before


def test_a_slow_webhook_is_given_up(client: ReflexioClient) -> None:
    released = Event()

    def slow(_: dict[str, Any]) -> Raw:
        released.wait(30)
        return Raw(500)

    with webhook(slow) as hook:
        configure(client, webhook_url=hook.url, webhook_timeout_seconds=1)
        done = client.run_playbook_optimization(pending_playbook(client), wait_for_response=True)
        released.set()
    assert (done.status, "did not answer within 1 s" in str(done.msg)) == ("failed", True)


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest", "http://0xA9FEA9FE/", "http://[fe80::1]/"])
def test_a_webhook_at_a_metadata_address_is_never_called(client: ReflexioClient, url: str) -> None:
    with pytest.raises(InvalidRequest, match="webhook_url: must not point at a metadata"):
        configure(client, webhook_url=url, webhook_max_retries=3, webhook_backoff_base_seconds=60.0)


def test_two_backends_are_refused(client: ReflexioClient) -> None:
    with pytest.raises(InvalidRequest, match="not both"):
        configure(client, webhook_url="http://127.0.0.1:9/", assistant_script_path="/bin/true")


def test_windows_whose_interactions_were_erased_are_told(client: ReflexioClient) -> None:
    configure(client, webhook_url="http://127.0.0.1:9/")
    number = pending_playbook(client)
    client.delete_all_interactions()
    done = client.run_playbook_optimization(number)
    assert done.status == "skipped"
    assert "their turns were deleted" in str(done.msg)


@pytest.mark.parametrize("body", [{}, {"agent_playbook_id": 1, "user_playbook_id": 1}, {"agent_playbook_id": 0}])
def test_a_request_without_one_target_is_a_422(http: httpx.Client, body: dict[str, Any]) -> None:
    problem(http.post("/api/run_playbook_optimization", json=body), 422)


def test_a_playbook_that_is_not_there_is_a_404(http: httpx.Client) -> None:
    problem(http.post("/api/run_playbook_optimization", json={"agent_playbook_id": 999_999}), 404)
    problem(http.get("/api/get_playbook_optimization", params={"job_id": 999_999}), 404)
    problem(http.post("/api/cancel_playbook_optimization", json={"job_id": 999_999}), 404)


# The command line


def command(*words: str, org: Org, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    monkeypatch.setenv("REFLEXIO_API_KEY", org.token)
    monkeypatch.setenv("COLUMNS", "200")
    done = CliRunner().invoke(app, ["optimise", *words, "--url", org.url])
    return done.exit_code, done.output


def test_the_command_line_runs_follows_lists_and_shows(
    client: ReflexioClient, org: Org, monkeypatch: pytest.MonkeyPatch
) -> None:
    with webhook() as hook:
        configure(client, webhook_url=hook.url)
        number = pending_playbook(client)
        code, said = command("run", str(number), "--dry-run", org=org, monkeypatch=monkeypatch)
        assert (code, "at most: assistant calls 36" in said) == (0, True)
        code, said = command("run", str(number), org=org, monkeypatch=monkeypatch)
    assert (code, f"+{parcels.INCUMBENT} First {parcels.DEEDS[0]}." in said) == (0, True), said
    assert f"-{parcels.INCUMBENT}" in said
    (job,) = client.get_playbook_optimizations().jobs
    code, said = command("list", org=org, monkeypatch=monkeypatch)
    assert (code, f"agent_playbook {number}" in said) == (0, True)
    code, said = command("show", str(job.job_id), org=org, monkeypatch=monkeypatch)
    assert (code, "2, winner" in said) == (0, True)
    code, said = command("cancel", str(job.job_id), org=org, monkeypatch=monkeypatch)
    assert (code, "had ended before" in said) == (1, True)


def test_the_command_line_says_what_stands_in_the_way(
    client: ReflexioClient, org: Org, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = pending_playbook(client)
    code, said = command("run", str(number), org=org, monkeypatch=monkeypatch)
    assert (code, "Optimisation is disabled" in said) == (1, True)


# Without a model


def test_without_a_model_it_says_that_it_needs_one(open_server: Running) -> None:
    with ReflexioClient(url_endpoint=open_server.url) as client:
        configure(client, webhook_url="http://127.0.0.1:9/")
        done = client.run_playbook_optimization(pending_playbook(client))
        client.update_config({"playbook_optimizer_config": None})
    assert (done.success, done.status) == (False, "skipped")
    assert "needs a language model" in str(done.msg)


# kill -9


def test_kill_minus_nine_in_the_middle_repeats_no_finished_call(start_server: StartServer) -> None:
    reached, killed = Event(), Event()

    def standing_still(sent: dict[str, Any]) -> dict[str, Any]:
        """Until the kill, calls from the ninth on have no answer."""
        if len(hook.requests) >= 9 and not killed.is_set():
            reached.set()
            killed.wait(30)
        return parcels.reply(sent)

    with scripted_model(otherwise=critic) as model, webhook(standing_still) as hook:
        server = start_server(**with_model(model))
        with ReflexioClient(url_endpoint=server.url) as client:
            configure(client, webhook_url=hook.url)
            number = pending_playbook(client)
            learned = model.calls
            begun = client.run_playbook_optimization(number, seed=5)
            assert reached.wait(30)
            server.kill()
            killed.set()
            at_hand = len(hook.requests)
            server.start()
            eventually(lambda: client.get_playbook_optimization(begun.job_id or 0, details=False).job.has_ended)
            job = client.get_playbook_optimization(begun.job_id or 0, details=False).job
            assert_adopted(client, number, job)
    asked = Counter(json.dumps(each) for each in hook.requests)
    repeated = [each for each, times in asked.items() if times > 1]
    # Only what was at hand when the process died was asked again: windows run side by side, so a call or two.
    assert 1 <= len(repeated) <= 2
    assert {json.dumps(each) for each in hook.requests[:at_hand]} >= set(repeated)
    assert len(hook.requests) == job.assistant_calls + len(repeated)
    questions = Counter(each.case for each in model.requests[learned:])
    assert set(questions.values()) == {1}
    assert sum(questions.values()) == job.judge_calls + job.reflection_calls
