"""Stalls: a provider refuses the key or the bill, so learning waits until it accepts again.

While learning is stalled, one window at a time probes whether the provider works again.
"""

from dataclasses import dataclass, replace

from reflexio.errors import ProviderRefused
from reflexio.jobs.retry import LONGEST_PROBE, backoff
from reflexio.models.config import Config
from reflexio.models.usage import LONGEST_MESSAGE, Stall, StallReason
from reflexio.organisations.configuration import stored_config
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Store, Tx


def enter(tx: Tx, reason: StallReason, message: str, now: int) -> Stall:
    """Starts a stall. The same reason again continues it; another reason starts a new one."""
    current, message = tx.stalls.get(), message[:LONGEST_MESSAGE]
    is_same = current is not None and current.reason == reason
    stall = replace(current, message=message) if current and is_same else Stall(reason, message, since=now)
    tx.stalls.put(stall)
    return stall


def clear(tx: Tx) -> bool:
    """Ends the stall; False when there was none."""
    return tx.stalls.remove()


def state(tx: Tx) -> Stall | None:
    return tx.stalls.get()


def mark_notified(tx: Tx) -> bool:
    """Notes that a person was notified; False when there is no stall. May be repeated."""
    stall = tx.stalls.get()
    if stall is None:
        return False
    tx.stalls.put(replace(stall, notified=True))
    return True


@dataclass(frozen=True)
class _Refusals:
    """How often a provider refused since it last worked, when to probe it next, and with which configuration."""

    count: int
    retry_at: int
    config: Config


class StallMonitor:
    """Starts and ends the stalls of all organisations, and decides when a stalled one probes its provider."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refusals: dict[str, _Refusals] = {}

    async def provider_refused(self, store: Store, error: ProviderRefused) -> None:
        """Stalls learning until the key or the bill is in order."""
        config, now = await store.read(stored_config), self._clock.now()
        before = self._refusals.get(store.org_id)
        count = before.count + 1 if before else 0
        self._refusals[store.org_id] = _Refusals(count, now + backoff(count, LONGEST_PROBE), config)
        reason: StallReason = "billing_error" if error.reason == "billing" else "auth_error"
        await store.write(lambda tx: enter(tx, reason, str(error), now))

    async def provider_works(self, store: Store) -> None:
        """Ends the stall; users who waited for it are due at once."""
        self._refusals.pop(store.org_id, None)

        def resume(tx: Tx) -> None:
            if clear(tx):
                tx.users.wake()

        if await store.read(state):
            await store.write(resume)

    def may_probe(self, org_id: str, config: Config, now: int) -> bool:
        """Whether a stalled organisation may try again: now and then, and at once with another configuration."""
        refusals = self._refusals.get(org_id)
        return refusals is None or refusals.retry_at <= now or refusals.config != config
