from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reflexio.errors import Conflict
from reflexio.interactions.publish import publish
from reflexio.models.interaction import InteractionData, PublishRequest
from reflexio.ports.clock import SystemClock
from reflexio.ports.storage import Database
from reflexio.storage.sqlite import open_sqlite


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = open_sqlite(tmp_path / "reflexio.db")
    yield opened
    await opened.close()


def said(content: str, *, at: int) -> PublishRequest:
    return PublishRequest(user_id="amira", interaction_data_list=[InteractionData(content=content, created_at=at)])


async def test_the_same_turns_stamped_a_second_later_are_a_repetition(database: Database) -> None:
    store = database.of("default")
    first = await publish(database, store, SystemClock(), said("hello", at=1000), idempotency_key="once")
    again = await publish(database, store, SystemClock(), said("hello", at=1001), idempotency_key="once")
    assert again == first
    assert await store.read(lambda tx: tx.interactions.count()) == 1


async def test_other_turns_under_the_same_key_are_refused(database: Database) -> None:
    store = database.of("default")
    await publish(database, store, SystemClock(), said("hello", at=1000), idempotency_key="once")
    with pytest.raises(Conflict, match="'once' was used for another request"):
        await publish(database, store, SystemClock(), said("good-bye", at=1000), idempotency_key="once")


async def test_a_default_that_is_written_out_makes_no_other_request(database: Database) -> None:
    store = database.of("default")
    short = {"user_id": "amira", "interaction_data_list": [{"content": "hello"}]}
    turn = {"content": "hello", "role": "User", "user_action": "none", "tools_used": [], "expert_content": ""}
    long = {**short, "interaction_data_list": [turn], "session_id": None, "source": "", "force_extraction": False}
    for each in (short, long):
        wanted = PublishRequest.model_validate(each)
        await publish(database, store, SystemClock(), wanted, idempotency_key="once")
    assert await store.read(lambda tx: tx.interactions.count()) == 1
