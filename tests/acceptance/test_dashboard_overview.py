"""The overview of a real server: what it counts, and what it warns about."""

from pathlib import Path

import httpx
import pytest

from reflexio.learning import stall
from reflexio.ports.storage import LearnedWindow
from reflexio.storage.sqlite import SqliteDatabase
from tests.builders import on_database
from tests.conftest import Running, StartServer

HTML = {"Accept": "text/html"}


@pytest.fixture
def troubled(tmp_path: Path) -> Path:
    """The folder of an organisation whose provider refuses the bill, and with a window that was set aside."""

    # Tidying removes old windows of users without turns.
    window = LearnedWindow("w", "ann", "set_aside", (1,), {}, error="broken", created_at=4_000_000_000)

    async def act(database: SqliteDatabase) -> None:
        store = database.of("default")
        await store.write(lambda tx: stall.enter(tx, "billing_error", "<b>pay</b> your bill", 1_700_000_000))
        await store.write(lambda tx: tx.windows.add(window))

    on_database(tmp_path, act)
    return tmp_path


def test_a_stall_and_what_was_set_aside_are_said_first(start_server: StartServer, troubled: Path) -> None:
    server = start_server(troubled)
    page = httpx.get(server.url, headers=HTML).text
    assert "Learning is stalled: &lt;b&gt;pay&lt;/b&gt; your bill" in page
    assert "1 window of turns was set aside" in page


def test_what_was_published_and_added_is_counted_at_once(start_server: StartServer) -> None:
    server = start_server()
    turns = [{"role": "User", "content": "Hello."}, {"role": "Agent", "content": "Hello!"}]
    body = {"user_id": "ann", "interaction_data_list": turns}
    assert "Nothing has been published yet" in httpx.get(server.url, headers=HTML).text
    httpx.post(f"{server.url}/api/publish_interaction", json=body).raise_for_status()
    playbook = {"agent_playbooks": [{"content": "Ask first"}]}
    httpx.post(f"{server.url}/api/add_agent_playbook", json=playbook).raise_for_status()
    page = " ".join(httpx.get(f"{server.url}/?days=7", headers=HTML).text.split())
    assert '<span class="stat-value">2</span><span class="stat-words">in 1 request, 7 days</span>' in page
    assert '<span class="stat-name">Waits for review</span><span class="stat-value">1</span>' in page


@pytest.mark.parametrize("days", ["0", "-1", "x", "999999999", "28"])
def test_any_period_is_answered(open_server: Running, days: str) -> None:
    assert httpx.get(f"{open_server.url}/?days={days}", headers=HTML).status_code == 200
