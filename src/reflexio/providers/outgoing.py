"""One check of every address that the server calls. Each connection goes to the address that was checked.

A name is looked up once for a connection: it cannot point to one host during the check and to another one afterwards.
`Host` and the name in TLS stay those of the URL. A redirect would open another connection, which is checked as well.
"""

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from reflexio.errors import InvalidRequest
from reflexio.models.addresses import Reach, host_reach, reach

T = TypeVar("T")

MAX_ADDRESSES = 3
"""Addresses of a host that are tried before it counts as unreachable."""


class AddressRefused(InvalidRequest, ValueError):
    """The server does not call this address. As a ValueError it passes through clients of models."""


async def _always() -> bool:
    return True


class OutgoingAddresses:
    """What may be called. `allows_private` is asked when a host is private or this machine."""

    def __init__(self, allows_private: Callable[[], Awaitable[bool]] = _always) -> None:
        self._allows_private = allows_private

    async def look_up(self, host: str, port: int) -> list[str]:
        """The addresses of a host. Raises AddressRefused when one of them must not be called, OSError without any."""
        worst = host_reach(host)
        if worst is not Reach.FORBIDDEN:
            entries = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
            addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
            worst = max(map(reach, addresses))
        if worst is Reach.FORBIDDEN:
            raise AddressRefused(
                f"The host {host!r} is a metadata, link-local, multicast or unspecified address, which is never called."
            )
        if worst is Reach.PRIVATE and not await self._allows_private():
            raise AddressRefused(
                f"The host {host!r} is private. Its operator can allow that with REFLEXIO_PRIVATE_ADDRESSES=1."
            )
        return addresses[:MAX_ADDRESSES]

    def guard(self, transport: T) -> T:
        """Lets a transport of httpx or httpx2 open only checked connections."""
        pool: Any = transport._pool  # type: ignore[attr-defined]
        # Both have no public way to choose what opens the connections of a transport.
        pool._network_backend = _CheckedConnections(pool._network_backend, self)
        return transport


OPERATORS = OutgoingAddresses()
"""For addresses that the operator has chosen: they may be private."""


class _CheckedConnections:
    """A network backend of httpcore, or of httpcore2, that looks up and checks a host before it connects."""

    def __init__(self, backend: Any, addresses: OutgoingAddresses) -> None:
        self._backend = backend
        self._addresses = addresses
        self._core: Any = sys.modules[type(backend).__module__.partition(".")[0]]

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - as httpcore calls it
        **options: Any,
    ) -> Any:
        try:
            async with asyncio.timeout(timeout):
                addresses = await self._addresses.look_up(host, port)
        except TimeoutError as error:
            raise self._core.ConnectTimeout(f"{host!r} was not found in time") from error
        except (OSError, UnicodeError) as error:
            raise self._core.ConnectError(f"{host!r} cannot be found") from error
        for address in addresses[:-1]:
            try:
                return await self._backend.connect_tcp(address, port, timeout=timeout, **options)
            except (self._core.ConnectError, self._core.ConnectTimeout):
                continue
        return await self._backend.connect_tcp(addresses[-1], port, timeout=timeout, **options)

    async def connect_unix_socket(self, path: str, *_: Any, **__: Any) -> Any:
        raise AddressRefused(f"The server does not call the socket {path!r}.")

    async def sleep(self, seconds: float) -> None:
        await self._backend.sleep(seconds)
