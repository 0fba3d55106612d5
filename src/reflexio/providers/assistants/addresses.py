"""Where a webhook may be: not at the addresses from which clouds tell machines their secrets.

A name is looked up here and the connection goes to the address that was looked at, so that a name cannot point to one
place while it is checked and to another a moment later.
"""

import asyncio
import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from reflexio.errors import AssistantFailed
from reflexio.models.interaction import METADATA_HOSTS
from reflexio.providers.assistants.exchange import Passing

TRANSLATED = IPv6Network("64:ff9b::/96")


async def addresses(host: str, port: int) -> list[str]:
    """All addresses of a host. Raises AssistantFailed when one of them must not be called."""
    if host.lower().rstrip(".") in METADATA_HOSTS:
        raise _refused(host)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Passing(f"The webhook's host {host!r} cannot be found: {error}") from error
    numbers = list(dict.fromkeys(str(each[4][0]) for each in found))
    if any(is_refused(number) for number in numbers):
        raise _refused(host)
    return numbers


def is_refused(number: str) -> bool:
    address = _plain(ip_address(number.partition("%")[0]))
    return address.is_link_local or address.is_multicast or str(address) in METADATA_HOSTS


def _plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The address that is reached in the end: the newer kind can wrap the older one in several ways."""
    if isinstance(address, IPv4Address):
        return address
    if address in TRANSLATED:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _refused(host: str) -> AssistantFailed:
    return AssistantFailed(f"The webhook's host {host!r} is a metadata or link-local address, which is never called.")
