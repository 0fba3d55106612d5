"""The demo data has something for every page to show, and `reflexio demo --open` serves it until it is stopped."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from reflexio.client.sync import ReflexioClient
from reflexio.models.learning import PlaybookStatus, Status
from reflexio.models.playbook import AgentPlaybook
from reflexio.server.process import running_server
from tests.builders import on_database

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("demo")]
EVERY_STATUS = list(Status)


@pytest.fixture(scope="module")
def client(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReflexioClient]:
    folder = tmp_path_factory.mktemp("demo-served") / "data"
    shutil.copytree(demo_folder, folder)
    with running_server(folder) as url, ReflexioClient(url_endpoint=url, api_key="none") as client:
        yield client


@pytest.fixture(scope="module")
def playbooks(client: ReflexioClient) -> list[AgentPlaybook]:
    return client.get_agent_playbooks(status_filter=EVERY_STATUS, limit=1000).agent_playbooks


def test_agent_playbooks_are_in_every_state(playbooks: list[AgentPlaybook]) -> None:
    states = Counter((playbook.status, playbook.playbook_status) for playbook in playbooks)
    for review in PlaybookStatus:
        assert states[Status.CURRENT, review] >= 2
    assert states[Status.SUPERSEDED, PlaybookStatus.APPROVED] >= 1
    assert len({playbook.agent_version for playbook in playbooks}) == 3


def test_decisions_name_the_reviewer_and_the_reason(client: ReflexioClient, playbooks: list[AgentPlaybook]) -> None:
    reviewers = set()
    for playbook in playbooks:
        if playbook.status is Status.CURRENT and playbook.playbook_status is not PlaybookStatus.PENDING:
            events = client.get_provenance("agent_playbook", str(playbook.agent_playbook_id)).events
            decisions = [event for event in events if event.op == "reviewed"]
            assert decisions
            assert all(event.reason for event in decisions)
            reviewers |= {event.actor for event in decisions}
    assert len(reviewers) > 1


def test_users_taught_something_and_outcomes_were_counted(client: ReflexioClient) -> None:
    assert len(client.get_user_playbooks(limit=1000).user_playbooks) > 80
    outcomes = [playbook.outcomes for playbook in client.get_agent_playbooks(limit=1000).agent_playbooks]
    assert sum(outcome.helped for outcome in outcomes if outcome) > 50


def test_optimiser_runs_have_candidates_rollouts_and_verdicts(client: ReflexioClient) -> None:
    jobs = client.get_playbook_optimizations().jobs
    completed = [job for job in jobs if job.status == "completed"]
    assert completed
    details = client.get_playbook_optimization(completed[0].job_id)
    assert len(details.candidates) > 2
    assert {evaluation.verdict for evaluation in details.evaluations} >= {"candidate"}
    assert any("Demo assistant" in line.content for line in details.evaluations[0].candidate_rollout)


def test_operations_usage_and_a_window_that_was_set_aside(client: ReflexioClient, demo_folder: Path) -> None:
    assert client.get_operation_status("profile_generation").operation_status is not None
    assert {entry.operation for entry in client.get_usage(30).usage} >= {"learn", "optimise"}
    assert {entry.model for entry in client.get_usage(30).usage} == {"demo:scripted"}
    set_aside = on_database(
        demo_folder, lambda database: database.of("default").read(lambda tx: tx.windows.set_aside(10))
    )
    assert len(set_aside) == 1


def test_it_serves_the_demo_until_it_is_stopped(demo_folder: Path, tmp_path: Path) -> None:
    """A folder with a database is served as it is; filling one is what the other tests looked at."""
    shutil.copytree(demo_folder, tmp_path / "data")
    # No browser is opened: `true` is the command that does nothing.
    environment = {**os.environ, "BROWSER": "true", "http_proxy": "http://127.0.0.1:9"}
    command = [sys.executable, "-m", "reflexio", "demo", "--open", "--data", str(tmp_path / "data")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    try:
        address = _address(process)
        assert httpx.get(f"{address}health", trust_env=False).json()["status"] == "ok"
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=30)
        assert "Traceback" not in rest
        assert process.returncode == 0
    finally:
        process.kill()


def _address(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    printed = ""
    while not (found := re.search(r"http://127\.0\.0\.1:\d+/", printed)):
        line = process.stdout.readline()
        assert line, f"the demo ended: {printed}"
        printed += line
    _wait_until_ready(found[0])
    return found[0]


def _wait_until_ready(address: str) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{address}health/ready", trust_env=False).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    pytest.fail("the demo's server did not start")


@pytest.mark.parametrize("option", [["--data", "somewhere"], ["--port", "9000"]])
def test_options_of_the_served_demo_need_open(option: list[str]) -> None:
    command = [sys.executable, "-m", "reflexio", "demo", *option]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "--open" in result.stderr
