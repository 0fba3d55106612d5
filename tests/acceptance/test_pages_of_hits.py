"""Answers of searches and of the review queue are pages of at most 8 MiB, and the pages together hold everything."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from reflexio.models.paging import MOST_BYTES
from reflexio.server.process import ServerProcess
from tests.builders import eventually
from tests.conftest import AT_HOME

pytestmark = pytest.mark.slow
LETTERS = 90_000
COUNT = 60
"""So many texts do not fit in half a page, and twice as many in one."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path_factory.mktemp("data"), AT_HOME)
    server.start()
    yield server
    server.kill()


def text(number: int) -> str:
    return f"teapot number {number} " + "ü" * (LETTERS // 2)


def call(server: ServerProcess, path: str, **body: Any) -> dict[str, Any]:
    response = httpx.post(f"{server.url}/api/{path}", json=body, timeout=60, trust_env=False)
    assert response.status_code == 200, response.text[:300]
    assert len(response.content) <= MOST_BYTES + 200_000
    answer: dict[str, Any] = response.json()
    return answer


def pages(server: ServerProcess, path: str, **body: Any) -> Iterator[dict[str, Any]]:
    cursor = None
    for _ in range(20):
        answer = call(server, path, **body, **({"cursor": cursor} if cursor else {}))
        yield answer
        cursor = answer.get("next_cursor")
        if not cursor:
            return
    raise AssertionError("the pages do not end")


@pytest.fixture(scope="module")
def filled(server: ServerProcess) -> ServerProcess:
    for start in range(0, 2 * COUNT, 20):
        numbers = range(start, start + 20)
        user = [{"user_id": "ann", "content": text(n), "agent_version": "v1"} for n in numbers]
        call(server, "add_user_playbook", user_playbooks=user)
        call(server, "add_user_profile", user_profiles=[{"user_id": "ann", "content": text(n)} for n in numbers])
    agent = [{"content": text(n), "agent_version": "v1"} for n in range(COUNT * 2)]
    for start in range(0, len(agent), 20):
        call(server, "add_agent_playbook", agent_playbooks=agent[start : start + 20])
    # Imports of this size are indexed in the background.
    eventually(
        lambda: httpx.get(f"{server.url}/health", trust_env=False).json()["backlog"]["learnings_not_indexed"] == 0
    )
    return server


IDS: dict[str, Callable[[dict[str, Any]], list[Any]]] = {
    "search_profiles": lambda answer: [row["profile_id"] for row in answer["user_profiles"]],
    "search_user_playbooks": lambda answer: [row["user_playbook_id"] for row in answer["user_playbooks"]],
    "search_agent_playbooks": lambda answer: [row["agent_playbook_id"] for row in answer["agent_playbooks"]],
    "get_review_queue": lambda answer: [item["agent_playbook"]["agent_playbook_id"] for item in answer["items"]],
}


@pytest.mark.parametrize("query", ["teapot number", ""], ids=["hits", "newest"])
@pytest.mark.parametrize("path", [path for path in IDS if path.startswith("search")])
def test_pages_of_a_search_hold_all_hits_once(filled: ServerProcess, path: str, query: str) -> None:
    body: dict[str, Any] = {"query": query, "top_k": 110, "search_mode": "fts"}
    if path == "search_agent_playbooks":
        body["playbook_status_filter"] = "pending"
    else:
        body["user_id"] = "ann"
    answers = [IDS[path](answer) for answer in pages(filled, path, **body)]
    ids = [number for answer in answers for number in answer]
    assert len(answers) > 1
    assert all(answers)
    assert len(ids) == len(set(ids)) == 110


def test_pages_of_a_search_of_all_kinds_hold_all_hits_once(filled: ServerProcess) -> None:
    body = {"query": "teapot number", "top_k": 70, "user_id": "ann", "search_mode": "fts"}
    body["agent_playbook_status_filter"] = ["pending"]
    ids: list[tuple[str, Any]] = []
    answers = list(pages(filled, "search", **body))
    names = {"profiles": "profile_id", "user_playbooks": "user_playbook_id", "agent_playbooks": "agent_playbook_id"}
    for answer in answers:
        ids += [(name, row[key]) for name, key in names.items() for row in answer[name]]
    assert len(answers) > 1
    assert len(ids) == len(set(ids))
    counts = {name: sum(kind == name for kind, _ in ids) for name in names}
    assert counts["profiles"] == counts["agent_playbooks"] == 70
    assert counts["user_playbooks"] <= 70  # without those that say what a shown agent playbook says


def test_pages_of_the_review_queue_hold_every_playbook_once(filled: ServerProcess) -> None:
    answers = [IDS["get_review_queue"](answer) for answer in pages(filled, "get_review_queue", limit=100)]
    ids = [number for answer in answers for number in answer]
    assert len(answers) > 1
    assert len(ids) == len(set(ids)) == 2 * COUNT


def test_a_short_answer_has_no_cursor_and_a_wrong_cursor_is_refused(filled: ServerProcess) -> None:
    body = {"query": "teapot", "user_id": "ann", "top_k": 3}
    assert "next_cursor" not in call(filled, "search_profiles", **body)
    wrong = httpx.post(f"{filled.url}/api/search_profiles", json={**body, "cursor": "nonsense"}, trust_env=False)
    assert wrong.status_code == 422
