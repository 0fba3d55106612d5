"""Stall: the provider refuses the key or the bill. Learning waits, and a client can tell a person so."""

from dataclasses import replace

from reflexio.models.stall import LONGEST_MESSAGE, Stall, StallReason
from reflexio.ports.storage import Tx


def enter(tx: Tx, reason: StallReason, message: str, now: int) -> Stall:
    """Learning waits from now on. The same reason again is the same stall; another one is told anew."""
    before = tx.stalls.get()
    said = message[:LONGEST_MESSAGE]
    same = before is not None and before.reason == reason
    stall = replace(before, message=said) if before and same else Stall(reason, said, since=now)
    tx.stalls.put(stall)
    return stall


def clear(tx: Tx) -> bool:
    """The provider works again; False when there was no stall."""
    return tx.stalls.remove()


def state(tx: Tx) -> Stall | None:
    return tx.stalls.get()


def mark_notified(tx: Tx) -> bool:
    """A person was told of the stall, if there is one. Once or twice is the same."""
    stall = tx.stalls.get()
    if stall is None:
        return False
    tx.stalls.put(replace(stall, notified=True))
    return True
