"""Stalls: a provider refuses the key or the bill, or fails for every window, so learning waits until it works again.

While learning is stalled, one window at a time probes whether the provider works again.
"""

import logging
from dataclasses import dataclass, replace

from reflexio.errors import ProviderError, ProviderRefused, ProviderUnavailable
from reflexio.jobs.retry import LONGEST_BACKOFF, LONGEST_PROBE, backoff, is_pausing
from reflexio.models.config import Config
from reflexio.models.usage import LONGEST_MESSAGE, Stall, StallReason
from reflexio.organisations.configuration import stored_config
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Store, Tx

log = logging.getLogger("reflexio.learn")

ALIKE = 3
"""Windows that fail one after the other, without a learned one between them, before the provider is the cause."""
OUTAGE_SECONDS = 60


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


@dataclass(frozen=True)
class _Faults:
    """The windows that have failed since one was last learned, and when the first one did."""

    windows: frozenset[str]
    since: int


class StallMonitor:
    """Starts and ends the stalls of all organisations, and decides when a stalled one probes its provider."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refusals: dict[str, _Refusals] = {}
        self._faults: dict[str, _Faults] = {}
        self._worked: dict[str, int] = {}
        self._pauses: dict[str, int] = {}

    async def provider_refused(self, store: Store, error: ProviderRefused, tried: Config | None = None) -> None:
        """Stalls learning until the key or the bill is in order, or another configuration than `tried` is stored."""
        reason: StallReason = "billing_error" if error.reason == "billing" else "auth_error"
        await self._stall(store, reason, str(error), LONGEST_PROBE, tried)

    async def check_failed(self, store: Store, error: ProviderError) -> None:
        """Stalls learning: the provider cannot answer the smallest question."""
        if isinstance(error, ProviderRefused):
            await self.provider_refused(store, error)
        else:
            await self._stall(store, "provider_error", f"The model does not work. {error}", LONGEST_PROBE)

    async def window_failed(self, store: Store, window: str, error: Exception) -> bool:
        """Whether learning is stalled: several windows have failed, and none was learned since."""
        now = self._clock.now()
        before = self._faults.get(store.org_id, _Faults(frozenset(), now))
        faults = self._faults[store.org_id] = _Faults(before.windows | {window}, before.since)
        current = await store.read(state)
        is_outage = isinstance(error, ProviderUnavailable) and error.is_overloaded
        # Rate limits and restarts are everyday; they stall only when they last.
        is_lasting = now - faults.since >= OUTAGE_SECONDS if is_outage else len(faults.windows) >= ALIKE
        is_general = is_lasting or current is not None
        if is_general:
            count = len(faults.windows)
            words = f"{count} windows have failed and none was learned since. The last one:" if count > 1 else ""
            await self._stall(store, "provider_error", f"{words} {error}".strip(), LONGEST_BACKOFF)
        return is_general

    async def _stall(
        self, store: Store, reason: StallReason, words: str, longest_pause: int, tried: Config | None = None
    ) -> None:
        config = await store.read(stored_config) if tried is None else tried
        now = self._clock.now()
        before = self._refusals.get(store.org_id)
        count = before.count + 1 if before else 0
        self._refusals[store.org_id] = _Refusals(count, now + backoff(count, longest_pause), config)
        if await store.read(state) is None:
            log.warning("learning of %r waits: %s", store.org_id, words)
        await store.write(lambda tx: enter(tx, reason, words, now))

    async def provider_works(self, store: Store) -> None:
        """Ends the stall; users who waited for it are due at once."""
        self._refusals.pop(store.org_id, None)
        self._faults.pop(store.org_id, None)
        self._pauses.pop(store.org_id, None)
        self._worked[store.org_id] = self._clock.now()

        def resume(tx: Tx) -> None:
            if clear(tx):
                tx.users.wake()

        if await store.read(state):
            await store.write(resume)

    async def is_faulty(self, store: Store) -> bool:
        """Whether learning is stalled for another reason than key and bill, so that a small question shows more."""
        current = await store.read(state)
        return current is not None and current.reason == "provider_error"

    def worked_since(self, org_id: str, moment: int) -> bool:
        """Whether a window was learned after that moment."""
        return self._worked.get(org_id, 0) > moment

    def pause(self, org_id: str, until: int) -> None:
        """No window starts before that time: the provider has asked to wait."""
        self._pauses[org_id] = max(until, self._pauses.get(org_id, 0))

    def is_paused(self, org_id: str, now: int) -> bool:
        return is_pausing(self._pauses.get(org_id, 0), now)

    def may_probe(self, org_id: str, config: Config, now: int) -> bool:
        """Whether a stalled organisation may try again: now and then, and at once with another configuration."""
        refusals = self._refusals.get(org_id)
        return refusals is None or not is_pausing(refusals.retry_at, now) or refusals.config != config
