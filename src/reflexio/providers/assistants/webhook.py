"""An assistant behind an HTTP address."""

from collections.abc import Sequence

import httpx

from reflexio.errors import AssistantFailed
from reflexio.models.rollout import Guidance, Message
from reflexio.providers.assistants.addresses import addresses
from reflexio.providers.assistants.exchange import MOST_BYTES, Passing, Patience, content, payload, too_long

CONNECT_SECONDS = 10.0
MOST_ADDRESSES = 3
WAIT_AND_SEE = {408, 425, 429}


class WebhookAssistant:
    """Posts to `url`. `auth_header` is sent as it is. Redirects are not followed: they could lead anywhere."""

    def __init__(self, url: str, *, auth_header: str = "", patience: Patience | None = None) -> None:
        self._url = httpx.URL(url)
        self._patience = patience or Patience()
        authorised = {"Authorization": auth_header} if auth_header else {}
        self._headers = {"Content-Type": "application/json", "Host": self._url.netloc.decode(), **authorised}
        self._opened: httpx.AsyncClient | None = None

    async def answer(self, messages: Sequence[Message], guidance: Guidance) -> str:
        body = payload(messages, guidance)
        return content(await self._patience(lambda: self._post(body)))

    async def aclose(self) -> None:
        if self._opened is not None:
            await self._opened.aclose()

    @property
    def _http(self) -> httpx.AsyncClient:
        """Opened when first used, and without certificates where none are needed: reading them takes a while."""
        if self._opened is None:
            seconds = self._patience.seconds
            self._opened = httpx.AsyncClient(
                follow_redirects=False,
                trust_env=False,
                verify=self._url.scheme == "https",
                timeout=httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds)),
            )
        return self._opened

    async def _post(self, body: bytes) -> bytes:
        host = self._url.host
        port = self._url.port or (443 if self._url.scheme == "https" else 80)
        numbers = (await addresses(host, port))[:MOST_ADDRESSES]
        for number in numbers:
            try:
                return await self._send(number, body)
            except httpx.ConnectError as error:
                unreached = error
        raise Passing(f"The webhook cannot be reached: {unreached}") from unreached

    async def _send(self, number: str, body: bytes) -> bytes:
        request = self._http.build_request(
            "POST",
            self._url.copy_with(host=number),
            content=body,
            headers=self._headers,
            extensions={"sni_hostname": self._url.host},
        )
        try:
            response = await self._http.send(request, stream=True)
            try:
                _check(response.status_code)
                return await _bounded(response)
            finally:
                await response.aclose()
        except httpx.ConnectError:
            raise  # The host may have another address.
        except httpx.HTTPError as error:
            raise Passing(f"The webhook failed: {type(error).__name__} {error}") from error


def _check(status: int) -> None:
    if status in WAIT_AND_SEE or status >= 500:
        raise Passing(f"The webhook answered with HTTP {status}.")
    if 300 <= status < 400:
        raise AssistantFailed(f"The webhook redirects (HTTP {status}), which is not followed; give its final address.")
    if not 200 <= status < 300:
        raise AssistantFailed(f"The webhook answered with HTTP {status}.")


async def _bounded(response: httpx.Response) -> bytes:
    read = bytearray()
    async for part in response.aiter_bytes():
        read += part
        if len(read) > MOST_BYTES:
            raise too_long()
    return bytes(read)
