from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reflexio.errors import Conflict
from reflexio.interactions.publish import publish
from reflexio.models.interaction import InteractionData, PublishRequest
from reflexio.models.paging import Page
from reflexio.organisations.configuration import change
from reflexio.organisations.usage import storage_stats
from reflexio.ports.clock import SystemClock
from reflexio.ports.storage import Database, Store, TimeRange
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


MAIL = "Write to amira@lamps.example"


async def configure(store: Store, *kinds: str) -> None:
    await change(store, SystemClock(), {"redaction": list(kinds)})


async def stored_texts(store: Store) -> list[str]:
    page = await store.read(lambda tx: tx.interactions.page(None, TimeRange(), Page(10)))
    return [turn.content for turn in page.rows]


async def test_what_the_organisation_names_is_redacted_before_it_is_stored(database: Database) -> None:
    store, other = database.of("default"), database.of("other")
    await configure(store, "email", "phone")
    response = await publish(database, store, SystemClock(), said(MAIL, at=1000))
    plain = await publish(database, other, SystemClock(), said(MAIL, at=1000))
    assert (response.redacted, plain.redacted) == ({"email": 1}, None)
    assert (await stored_texts(store), await stored_texts(other)) == (["Write to [email]"], [MAIL])
    assert (await storage_stats(store, SystemClock(), "amira")).redacted_count == 1
    nothing = await publish(database, store, SystemClock(), said("hello", at=1000))
    assert nothing.redacted == {}


@pytest.mark.parametrize(("then", "now"), [([], ["email"]), (["email"], []), (["email"], ["email", "phone"])])
async def test_a_repetition_is_recognised_though_other_kinds_are_redacted_now(
    database: Database, then: list[str], now: list[str]
) -> None:
    store = database.of("default")
    await configure(store, *then)
    first = await publish(database, store, SystemClock(), said(MAIL, at=1000), idempotency_key="once")
    await configure(store, *now)
    again = await publish(database, store, SystemClock(), said(MAIL, at=1001), idempotency_key="once")
    assert again == first
    with pytest.raises(Conflict):
        await publish(database, store, SystemClock(), said("something else", at=1000), idempotency_key="once")
    assert len(await stored_texts(store)) == 1
