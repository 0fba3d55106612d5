"""What the doctor says about the machine, about what waits for people, and about what is stuck."""

import json
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import reflexio
from reflexio.app import Reflexio, build
from reflexio.doctor import _backlog, _learning, _read_learning, examine_organisation, machine
from reflexio.doctor.finding import Finding
from reflexio.models.learning import Kind, Learning, PlaybookStatus
from reflexio.ports.storage import IndexBacklog, TextVectors, Tx
from reflexio.settings import Settings
from tests.builders import request

DAY = 86_400
NOW = 1_900_000_000


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Reflexio]:
    built = await build(Settings(data=tmp_path))
    yield built
    await built.close()


def playbook(content: str, *, days: int, review: PlaybookStatus = PlaybookStatus.APPROVED, now: int = NOW) -> Learning:
    at = now - days * DAY
    return Learning(Kind.AGENT_PLAYBOOK, content, agent_version="v1", review=review, created_at=at, modified_at=at)


async def review_of(parts: Reflexio, *playbooks: Learning) -> list[Finding]:
    """The findings about these playbooks, which all have vectors."""
    texts = [learning.text for learning in playbooks]
    vectors = await parts.immediate_embedder.embed(texts)
    assert isinstance(vectors, TextVectors)
    await parts.database.of("ours").write(lambda tx: tx.learnings.add(playbooks, vectors))
    return [found for found in await examine_organisation(parts, "ours") if found.part == "review"]


def told(findings: list[Finding], words: str) -> Finding:
    return next(found for found in findings if words in found.detail)


async def test_reviews_that_wait_too_long_are_out_of_order(parts: Reflexio) -> None:
    now = parts.clock.now()
    waiting = [playbook(f"Rule {days}", days=days, review=PlaybookStatus.PENDING, now=now) for days in (1, 3)]
    (found,) = await review_of(parts, *waiting)
    assert (found.is_ok, "2 agent playbooks wait" in found.detail) == (True, True)
    (found,) = await review_of(parts, playbook("Rule 9", days=9, review=PlaybookStatus.PENDING, now=now))
    assert not found.is_ok
    assert "3 agent playbooks wait for review, 1 of them for more than a week" in found.detail
    assert "reflexio review" in found.remedy


async def test_playbooks_that_say_the_same_or_the_opposite_are_named(parts: Reflexio) -> None:
    now = parts.clock.now()
    contents = (
        "Ask for the order number first.",
        "Ask for the order number at first.",
        "Do not ask for the order number first.",
        "Offer the night bus to guests who come late.",
    )
    findings = await review_of(parts, *(playbook(content, days=1, now=now) for content in contents))
    assert told(findings, "nearly the same: 1 and 2").is_ok
    opposite = told(findings, "the opposite")
    assert not opposite.is_ok
    assert "1 and 3" in opposite.detail
    assert "4" not in opposite.detail


async def test_playbooks_that_no_prompt_had_are_named_once_use_is_known(parts: Reflexio) -> None:
    now = parts.clock.now()
    findings = await review_of(parts, playbook("Old", days=40, now=now), playbook("New", days=2, now=now))
    assert "retrieved_learnings" in told(findings, "not known which playbooks are used").remedy

    def show(tx: Tx) -> None:
        from sqlalchemy import insert

        from reflexio.storage.schema import exposures

        row = {"org_id": "ours", "user_id": "ann", "interaction_id": 1, "kind": "agent_playbook", "public_id": "2"}
        tx.exposures._connection.execute(insert(exposures), [row])  # type: ignore[attr-defined]

    await parts.database.of("ours").write(show)
    findings = [found for found in await examine_organisation(parts, "ours") if found.part == "review"]
    assert "such as 1" in told(findings, "were in no prompt").detail


async def test_learning_that_does_not_move_is_stuck(parts: Reflexio) -> None:
    def fall_behind(tx: Tx) -> None:
        tx.users.mark_unlearned("ann", NOW)
        tx.users.postpone("ann", NOW + 60, "the model sleeps")

    store = parts.database.of("ours")
    await store.write(fall_behind)
    state = await store.read(_read_learning)
    (soon,) = _learning("learning", state, NOW + 3600)
    (late,) = _learning("learning", state, NOW + 3 * DAY)
    assert (soon.is_ok, late.is_ok) == (True, False)
    assert "stuck" in late.detail
    assert "3 days" in late.detail
    assert "the model sleeps" in late.detail


def test_a_backlog_is_a_finding_when_it_is_old() -> None:
    backlog = IndexBacklog(learnings_without_vector=3, turns_without_vector=4, without_vector_since=NOW)
    assert _backlog(backlog, NOW + 60).is_ok
    old = _backlog(backlog, NOW + 7200)
    assert not old.is_ok
    assert "3 learnings and 4 turns" in old.detail
    assert "2 h" in old.detail
    assert _backlog(backlog, NOW + 7200, is_shrinking=True).is_ok


async def test_a_clock_behind_the_rows_is_a_finding(parts: Reflexio) -> None:
    store = parts.database.of("ours")
    await store.write(lambda tx: tx.requests.add(request(created_at=NOW)))
    assert (await machine.examine_clock(parts.database, ["ours"], NOW)).is_ok
    behind = await machine.examine_clock(parts.database, ["ours"], NOW - 2 * DAY)
    assert (behind.is_ok, "2 days in the future" in behind.detail) == (False, True)
    assert not (await machine.examine_clock(parts.database, [], 5)).is_ok


def test_little_disk_and_memory_are_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.examine_disk(tmp_path / "not" / "there").part == "disk"
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 2**20))
    assert not machine.examine_disk(tmp_path).is_ok
    monkeypatch.setattr(machine, "_available_memory", lambda: 2**20)
    (found,) = machine.examine_memory()
    assert not found.is_ok
    monkeypatch.setattr(machine, "_available_memory", lambda: None)
    assert not list(machine.examine_memory())


@contextmanager
def answering(body: Any, at: int) -> Iterator[str]:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response_only(200)
            self.send_header("Date", datetime.fromtimestamp(at, UTC).strftime("%a, %d %b %Y %H:%M:%S GMT"))
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("body", "skew", "broken"),
    [
        ({"version": reflexio.__version__}, 0, ""),
        ({"version": "99.1"}, 0, "runs Reflexio 99.1"),
        ({"version": reflexio.__version__}, 7200, "2 h apart"),
        (["a web shop"], 0, "no Reflexio server"),
    ],
)
async def test_the_server_is_compared_with_this_program(body: Any, skew: int, broken: str) -> None:
    with answering(body, NOW + skew) as url:
        findings = [found async for found in machine.examine_server(url, NOW)]
    assert [broken in found.detail for found in findings if not found.is_ok] == ([True] if broken else [])


async def test_no_server_is_in_order_and_says_how_to_start_one() -> None:
    (found,) = [found async for found in machine.examine_server("http://127.0.0.1:9", NOW)]
    assert (found.is_ok, "reflexio serve" in found.remedy) == (True, True)
