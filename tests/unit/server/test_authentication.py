"""Which callers are served, and how long a lookup of keys is cached."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from starlette.datastructures import Headers

from reflexio.errors import InvalidRequest, NotAuthorised
from reflexio.organisations import keys
from reflexio.ports.clock import SystemClock
from reflexio.ports.storage import Database
from reflexio.server.authentication import CACHE_SECONDS, Authenticator, is_local
from reflexio.storage.sqlite import open_sqlite
from tests.builders import problem
from tests.unit.server.conftest import Ticks

LOCAL = Headers({"host": "localhost:8081"})


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = open_sqlite(tmp_path / "reflexio.db")
    yield database
    await database.close()


def bearing(token: str) -> Headers:
    return Headers({"host": "reflexio.example.org", "authorization": f"Bearer {token}"})


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.9.9.9", "::1"])
def test_this_machine_is_local(peer: str) -> None:
    assert is_local(peer, LOCAL)


@pytest.mark.parametrize("peer", ["10.0.0.1", "192.168.1.2", "8.8.8.8", "::2", "", "unix", "127.0.0.1.example.org"])
def test_other_machines_are_not(peer: str) -> None:
    assert not is_local(peer, LOCAL)


async def test_a_caller_on_another_machine_is_refused_without_keys(app: FastAPI) -> None:
    transport = httpx.ASGITransport(app, client=("192.168.1.2", 9))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        answer = await http.get("/api/whoami")
    assert "same machine" in problem(answer, 403)
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_with_require_key_this_machine_needs_one_too(database: Database) -> None:
    authenticator = Authenticator(database, "", require_key=True)
    for headers in (LOCAL, Headers({"host": "localhost", "authorization": "Bearer anything"})):
        with pytest.raises(NotAuthorised):
            await authenticator.authenticate("127.0.0.1", headers)
    created = await keys.create(database, SystemClock(), "acme")
    caller = await authenticator.authenticate("127.0.0.1", bearing(created.token))
    assert caller.org_id == "acme"


async def test_a_revoked_key_is_refused_after_two_seconds(database: Database, ticks: Ticks) -> None:
    authenticator = Authenticator(database, "", monotonic=ticks)
    valid = await keys.create(database, SystemClock(), "acme")
    created = await keys.create(database, SystemClock(), "acme")
    assert (await authenticator.authenticate("8.8.8.8", bearing(created.token))).org_id == "acme"
    await keys.revoke(database, SystemClock(), created.key.id)

    ticks.now += CACHE_SECONDS - 0.01
    assert (await authenticator.authenticate("8.8.8.8", bearing(created.token))).org_id == "acme"
    ticks.now += 0.02
    with pytest.raises(NotAuthorised):
        await authenticator.authenticate("8.8.8.8", bearing(created.token))
    assert (await authenticator.authenticate("8.8.8.8", bearing(valid.token))).org_id == "acme"


async def test_callers_without_a_key_are_refused_two_seconds_after_the_first_key(
    database: Database, ticks: Ticks
) -> None:
    authenticator = Authenticator(database, "", monotonic=ticks)
    assert (await authenticator.authenticate("127.0.0.1", LOCAL)).org_id == "default"
    created = await keys.create(database, SystemClock(), "acme")
    assert (await authenticator.authenticate("127.0.0.1", bearing(created.token))).org_id == "acme"
    ticks.now += CACHE_SECONDS
    with pytest.raises(NotAuthorised):
        await authenticator.authenticate("127.0.0.1", LOCAL)


async def test_a_revoked_key_is_refused_also_when_it_was_the_last(database: Database, ticks: Ticks) -> None:
    authenticator = Authenticator(database, "", monotonic=ticks)
    created = await keys.create(database, SystemClock(), "acme")
    await keys.revoke(database, SystemClock(), created.key.id)
    here = Headers({"host": "localhost", "authorization": f"Bearer {created.token}"})
    for _ in range(2):
        with pytest.raises(NotAuthorised, match="not valid here"):
            await authenticator.authenticate("127.0.0.1", here)
    any_word = Headers({"host": "localhost", "authorization": "Bearer none"})
    assert (await authenticator.authenticate("127.0.0.1", any_word)).org_id == "default"
    assert (await authenticator.authenticate("127.0.0.1", LOCAL)).org_id == "default"


async def test_guessed_tokens_do_not_fill_the_memory(
    database: Database, ticks: Ticks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reflexio.server.authentication.MAX_CACHED_TOKENS", 5)
    authenticator = Authenticator(database, "the key", monotonic=ticks)
    for number in range(30):
        with pytest.raises(NotAuthorised):
            await authenticator.authenticate("127.0.0.1", bearing(f"guess {number}"))
    assert len(authenticator._tokens) <= 5


async def test_the_operators_key_belongs_to_the_default_organisation(database: Database) -> None:
    authenticator = Authenticator(database, "the key")
    assert (await authenticator.authenticate("8.8.8.8", bearing("the key"))).org_id == "default"
    with pytest.raises(NotAuthorised):
        await authenticator.authenticate("127.0.0.1", LOCAL)


@pytest.mark.parametrize("org", ["", "  ", "x" * 256])
async def test_an_organisation_has_a_name(database: Database, org: str) -> None:
    with pytest.raises(InvalidRequest, match="name of 1 to 255"):
        await keys.create(database, SystemClock(), org)
