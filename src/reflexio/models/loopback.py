"""Which host names mean this machine."""

import ipaddress
from functools import lru_cache


@lru_cache(maxsize=1024)
def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host."""
    name = host.strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
