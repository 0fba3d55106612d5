"""Connections go to the address that was checked: once looked up, with the host of the URL, and nowhere forbidden."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest

from reflexio.app import build
from reflexio.errors import ProviderRefused, ProviderUnavailable
from reflexio.models.extraction import Spend
from reflexio.organisations import keys
from reflexio.ports.chat import Messages
from reflexio.ports.clock import SystemClock
from reflexio.providers.chat.resolve import CallOptions, ProviderCredentials, PydanticChat, address
from reflexio.providers.outgoing import AddressRefused, OutgoingAddresses
from reflexio.settings import Settings
from tests.unit.providers.chat.test_session import Colour
from tests.webhook import Raw, webhook


async def refuse() -> bool:
    return False


class Names:
    """A resolver that gives the next of some answers for each lookup."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.lookups: list[str] = []

    async def __call__(self, host: str, port: int, **_: Any) -> list[Any]:
        self.lookups.append(host)
        address = self.answers.pop(0) if self.answers else "169.254.169.254"
        return [(0, 0, 0, "", (part, port)) for part in address.split()]


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: str) -> Names:
    """Only lookups of the check are answered; the connection itself goes to a number."""
    names = Names(*answers)
    original = asyncio.get_running_loop().getaddrinfo

    async def look_up(host: Any, port: Any, **options: Any) -> Any:
        return await (names(host, port) if str(host).endswith(".example") else original(host, port, **options))

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
    return names


async def ask(kind: str, url: str, addresses: OutgoingAddresses) -> tuple[int, str]:
    """A request by httpx or httpx2, as the webhook and the models make them."""
    if kind == "httpx":
        async with httpx.AsyncClient(transport=addresses.guard(httpx.AsyncHTTPTransport())) as client:
            old = await client.post(url, json={}, follow_redirects=True)
            return old.status_code, old.text
    async with httpx2.AsyncClient(transport=addresses.guard(httpx2.AsyncHTTPTransport())) as client2:
        new = await client2.post(url, json={}, follow_redirects=True)
        return new.status_code, new.text


@pytest.mark.parametrize("kind", ["httpx", "httpx2"])
async def test_a_name_is_looked_up_once_and_the_host_stays_that_of_the_url(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    names = resolving(monkeypatch, "127.0.0.1")
    with webhook(lambda sent: {"content": "here"}) as hook:
        port = httpx.URL(hook.url).port
        status, _ = await ask(kind, f"http://rebinding.example:{port}/", OutgoingAddresses())
    assert (status, names.lookups) == (200, ["rebinding.example"])
    assert hook.headers[0]["host"] == f"rebinding.example:{port}"


@pytest.mark.parametrize("kind", ["httpx", "httpx2"])
@pytest.mark.parametrize("answer", ["169.254.169.254", "93.184.216.34 169.254.169.254", "::ffff:a9fe:a9fe", "::"])
async def test_a_name_with_one_forbidden_address_is_not_called(
    monkeypatch: pytest.MonkeyPatch, kind: str, answer: str
) -> None:
    resolving(monkeypatch, answer)
    with pytest.raises(AddressRefused, match="never called"):
        await ask(kind, "http://metadata.example/", OutgoingAddresses())


@pytest.mark.parametrize("kind", ["httpx", "httpx2"])
async def test_a_redirect_to_a_forbidden_address_is_not_followed(kind: str) -> None:
    moved = Raw(307, headers={"Location": "http://169.254.169.254/latest"})
    with webhook(lambda _: moved) as hook, pytest.raises(AddressRefused, match="never called"):
        await ask(kind, hook.url, OutgoingAddresses())


@pytest.mark.parametrize("kind", ["httpx", "httpx2"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "10.0.0.1"])
async def test_private_addresses_are_called_only_where_that_is_allowed(kind: str, host: str) -> None:
    with webhook() as hook, pytest.raises(AddressRefused, match="REFLEXIO_PRIVATE_ADDRESSES=1"):
        await ask(kind, f"http://{host}:{httpx.URL(hook.url).port}/", OutgoingAddresses(refuse))
    assert hook.requests == []


@pytest.mark.parametrize(
    ("environment", "has_key", "allowed"),
    [
        ({}, False, True),
        ({}, True, False),
        ({"REFLEXIO_API_KEY": "k"}, False, False),
        ({"REFLEXIO_REQUIRE_KEY": "1"}, False, False),
        ({"REFLEXIO_HOST": "0.0.0.0"}, False, False),  # noqa: S104
        ({"REFLEXIO_PRIVATE_ADDRESSES": "0"}, False, False),
        ({"REFLEXIO_PRIVATE_ADDRESSES": "1", "REFLEXIO_API_KEY": "k"}, True, True),
    ],
)
async def test_private_addresses_are_for_a_person_at_home_or_by_the_operators_word(
    tmp_path: Path, environment: dict[str, str], has_key: bool, allowed: bool
) -> None:
    from reflexio.app import outgoing_addresses

    settings = Settings.read({**environment, "REFLEXIO_DATA": str(tmp_path)})
    parts = await build(settings)
    if has_key:
        await keys.create(parts.database, SystemClock(), "acme")
    addresses = outgoing_addresses(settings, parts.database)
    if allowed:
        assert await addresses.look_up("127.0.0.1", 80) == ["127.0.0.1"]
    else:
        with pytest.raises(AddressRefused):
            await addresses.look_up("127.0.0.1", 80)
    await parts.close()


def chat_at(url: str, provider: str, addresses: OutgoingAddresses) -> PydanticChat:
    credentials = ProviderCredentials("secret-key", url)
    found = address(f"{provider}:m", keys={provider: credentials}, options=CallOptions(timeout=9))
    return PydanticChat(replace(found, addresses=addresses))


@pytest.mark.parametrize("provider", ["custom", "openai", "anthropic", "google"])
async def test_a_model_at_a_refused_address_says_so(provider: str) -> None:
    chat = chat_at("http://127.0.0.1:9/v1", provider, OutgoingAddresses(refuse))
    with pytest.raises(ProviderRefused, match="REFLEXIO_PRIVATE_ADDRESSES=1"):
        await chat.ask(Messages("Look.", "A thing."), Colour)
    await chat.aclose()


@pytest.mark.parametrize("status", [200, 400, 401, 404, 429, 500])
@pytest.mark.parametrize("provider", ["custom", "anthropic", "google"])
async def test_no_byte_of_what_an_organisations_address_answers_is_in_the_error(provider: str, status: int) -> None:
    body = b'{"error": {"message": "SECRET", "type": "SECRET"}, "message": "SECRET"}'
    with webhook(lambda _: Raw(status, body)) as hook:
        chat = chat_at(hook.url, provider, OutgoingAddresses())
        with pytest.raises(Exception) as raised:  # noqa: PT011
            await chat.ask(Messages("Look.", "A thing."), Colour)
        await chat.aclose()
    assert "SECRET" not in str(raised.value)
    assert isinstance(getattr(raised.value, "spend", None), Spend)
    if status == 500:
        assert isinstance(raised.value, ProviderUnavailable)
