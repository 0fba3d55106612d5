"""Which addresses a server may call: public ones, private ones where that is allowed, and those that are never called.

Only what an address itself says. Names are looked up where the connection is made (`providers/outgoing.py`).
"""

import socket
import unicodedata
from collections.abc import Iterator
from enum import IntEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import unquote, urlsplit

METADATA_NAMES = frozenset(
    ("metadata", "metadata.goog", "metadata.google.internal", "instance-data", "instance-data.ec2.internal")
)
FORBIDDEN = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "169.254.0.0/16",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "100.100.100.200/32",  # Alibaba's metadata service
        "168.63.129.16/32",  # Azure's
        "192.0.0.192/32",  # Oracle's
    )
)
FORBIDDEN_6 = tuple(IPv6Network(text) for text in ("::/128", "fe80::/10", "ff00::/8", "fd00:ec2::/32", "fd20:ce::/32"))
NAT64 = IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48")
COMPATIBLE, MAPPED, TRANSLATED = IPv6Network("::/96"), IPv6Network("::ffff:0:0/96"), IPv6Network("::ffff:0:0:0/96")
ISATAP = {0x00005EFE, 0x02005EFE}
LOW_32 = 0xFFFFFFFF


class Reach(IntEnum):
    """What an address reaches. The worst of several counts."""

    PUBLIC = 0
    PRIVATE = 1
    FORBIDDEN = 2


def reach(address: str) -> Reach:
    """What a numeric address reaches, also when IPv6 wraps an IPv4 address.

    >>> reach("93.184.216.34"), reach("10.1.2.3"), reach("::ffff:169.254.169.254")
    (<Reach.PUBLIC: 0>, <Reach.PRIVATE: 1>, <Reach.FORBIDDEN: 2>)
    """
    number = ip_address(address.partition("%")[0])
    if isinstance(number, IPv4Address):
        return _reach_4(number)
    if number == IPv6Address("::1"):
        return Reach.PRIVATE
    wrapped = max(map(_reach_4, _wrapped(number)), default=Reach.PUBLIC)
    if any(number in network for network in (*NAT64, MAPPED, TRANSLATED)):
        return wrapped
    if any(number in network for network in FORBIDDEN_6):
        return Reach.FORBIDDEN
    own = Reach.PUBLIC if number.is_global and not number.is_site_local else Reach.PRIVATE
    return max(own, wrapped)


def _reach_4(address: IPv4Address) -> Reach:
    if any(address in network for network in FORBIDDEN):
        return Reach.FORBIDDEN
    return Reach.PUBLIC if address.is_global else Reach.PRIVATE


def _wrapped(address: IPv6Address) -> Iterator[IPv4Address]:
    number = int(address)
    is_isatap = (number >> 32) & LOW_32 in ISATAP
    if is_isatap or any(address in network for network in (*NAT64, COMPATIBLE, MAPPED, TRANSLATED)):
        yield IPv4Address(number & LOW_32)
    if address.sixtofour:
        yield address.sixtofour
    if address.teredo:
        yield from address.teredo


def host_reach(host: str) -> Reach | None:
    """What a host reaches, as far as its spelling says it. None is a name that has to be looked up.

    >>> host_reach("0xA9FEA9FE"), host_reach("0251.254.43518"), host_reach("example.org")
    (<Reach.FORBIDDEN: 2>, <Reach.FORBIDDEN: 2>, None)
    """
    name = unicodedata.normalize("NFKC", unquote(host)).replace("。", ".").strip("[]").lower().rstrip(".")
    if name in METADATA_NAMES:
        return Reach.FORBIDDEN
    if name == "localhost" or name.endswith(".localhost"):
        return Reach.PRIVATE
    try:
        return reach(name)
    except ValueError:
        pass
    try:
        # One number, octal and hexadecimal parts: what C libraries read as an address.
        return reach(socket.inet_ntoa(socket.inet_aton(name)))
    except (OSError, UnicodeError, ValueError):
        return None


def check_url(url: str) -> str:
    """The URL, unless its host is spelled as an address that is never called. Raises ValueError."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url  # no client can call it
    if "\\" in parts.netloc or any(character.isspace() for character in parts.netloc):
        raise ValueError("must have a host without backslashes and blanks")
    if host_reach(parts.hostname or "") is Reach.FORBIDDEN:
        raise ValueError("must not point at a metadata, link-local, multicast or unspecified address")
    return url
