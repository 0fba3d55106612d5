"""What becomes of a window that failed: it is tried again, learning stalls, or the window is set aside.

A window is set aside only for a fault of its own. A provider that fails for every window stalls learning instead, and
nothing is lost.
"""

from collections.abc import Awaitable, Callable
from math import ceil

from reflexio.errors import ProviderError, ProviderRefused, ProviderUnavailable
from reflexio.jobs.retry import LONGEST_BACKOFF, LONGEST_PROBE, backoff
from reflexio.jobs.token_budget import record_spend
from reflexio.learning.stall import StallMonitor
from reflexio.learning.window import TYPES, WindowTask
from reflexio.models.config import Config
from reflexio.models.extraction import Spend
from reflexio.organisations.configuration import stored_config
from reflexio.ports.clock import Clock
from reflexio.ports.storage import LearnedWindow, Store, Tx

MOST_ATTEMPTS = 6
ATTEMPTS_BEFORE_CHECK = 3
"""Failures of one window after which the provider is asked a tiny question, unless it has learned another one since."""
Check = Callable[[], Awaitable[Spend]]


async def check_nothing() -> Spend:
    """The check when the failure is known to have nothing to do with a provider."""
    return Spend()


async def fail(
    task: WindowTask,
    store: Store,
    clock: Clock,
    stalls: StallMonitor,
    error: Exception,
    check: Check = check_nothing,
    tried: Config | None = None,
) -> None:
    """Records a failure. `check` raises a ProviderError when the provider does not work at all.

    When another configuration than `tried` is stored by now, the next attempt is due at once.
    """
    now = clock.now()
    # Errors of embedders carry no spend.
    await record_spend(store, getattr(error, "spend", None) or Spend(), clock)
    if isinstance(error, ProviderUnavailable):
        stalls.pause(store.org_id, now + _asked_to_wait(error))
    if isinstance(error, ProviderRefused):
        await stalls.provider_refused(store, error, tried)
    if task.by_hand:
        return
    is_own, is_probed = False, isinstance(error, ProviderRefused)
    if not isinstance(error, ProviderRefused):
        failures = await store.write(lambda tx: _note(tx, task, error, now))
        is_stalled = await stalls.window_failed(store, f"{task.user_id}/{task.turns[0]}", error)
        if (
            not is_stalled
            and len(failures) >= ATTEMPTS_BEFORE_CHECK
            and not stalls.worked_since(store.org_id, failures[-1].created_at)
        ):
            is_stalled = is_probed = not await _works(check, store, clock, stalls)
        is_own = not is_stalled and len(failures) >= MOST_ATTEMPTS
    longest = LONGEST_PROBE if is_probed else LONGEST_BACKOFF

    def record(tx: Tx) -> None:
        if tried is not None and stored_config(tx) != tried:
            tx.users.postpone(task.user_id, now, str(error))
        elif is_own:
            _set_aside(tx, task, error, now)
        else:
            _postpone(tx, task, error, now, longest)

    await store.write(record)


async def try_again(task: WindowTask, store: Store, clock: Clock, error: Exception) -> None:
    """The configuration has changed during the attempt, which says nothing about the new one: the next one is due."""
    await record_spend(store, getattr(error, "spend", None) or Spend(), clock)
    if not task.by_hand:
        await store.write(lambda tx: tx.users.postpone(task.user_id, clock.now(), str(error)))


async def wait_for_provider(
    task: WindowTask, store: Store, clock: Clock, stalls: StallMonitor, error: ProviderError
) -> None:
    """The provider still does not work, so the window was not tried: it waits and has not failed."""
    await record_spend(store, error.spend or Spend(), clock)
    await stalls.check_failed(store, error)
    if not task.by_hand:
        await store.write(lambda tx: _postpone(tx, task, error, clock.now(), LONGEST_PROBE))


async def _works(check: Check, store: Store, clock: Clock, stalls: StallMonitor) -> bool:
    try:
        await record_spend(store, await check(), clock)
    except ProviderError as error:
        await record_spend(store, error.spend or Spend(), clock)
        await stalls.check_failed(store, error)
        return False
    return True


def _note(tx: Tx, task: WindowTask, error: Exception, now: int) -> list[LearnedWindow]:
    """The failures of this window so far, newest first, that it may be the cause of."""
    is_outage = isinstance(error, ProviderUnavailable) and error.is_overloaded
    if not tx.interactions.many(task.turns):
        return []  # erased meanwhile: the window would name its user again
    if not is_outage and tx.windows.get(f"{task.key}:failed") is None:
        tx.windows.add(_failed_window(task, "failed", error, now))
    windows = tx.windows.of_turns(task.user_id, task.turns[:1])
    return [] if is_outage else [window for window in windows if window.state == "failed"]


def _postpone(tx: Tx, task: WindowTask, error: Exception, now: int, longest: int) -> None:
    waiting = tx.users.waiting(task.user_id)
    pause = backoff(waiting.attempts if waiting else 0, longest)
    tx.users.postpone(task.user_id, now + max(pause, _asked_to_wait(error)), str(error))


def _set_aside(tx: Tx, task: WindowTask, error: Exception, now: int) -> None:
    if not tx.interactions.many(task.turns):
        return  # erased meanwhile
    tx.interactions.mark_learned(task.turns)
    tx.windows.drop_steps(task.user_id, task.turns)
    # So that a rerun of what was not understood takes exactly these turns up.
    tx.interactions.mark_unread(task.turns, list(TYPES))
    tx.users.clear_unlearned(task.user_id)
    words = f"Set aside after {MOST_ATTEMPTS} attempts; a rerun takes it up again. {error}"
    tx.windows.add(_failed_window(task, "set_aside", words, now))


def _asked_to_wait(error: Exception) -> int:
    """Seconds that the provider asks to wait, within bounds."""
    asked = error.retry_after if isinstance(error, ProviderUnavailable) else 0.0
    return min(LONGEST_BACKOFF, ceil(max(0.0, asked)))


def _failed_window(task: WindowTask, state: str, error: Exception | str, now: int) -> LearnedWindow:
    key = f"{task.key}:{state}"
    return LearnedWindow(key, task.user_id, state, task.turns, {}, error=str(error)[:1000], created_at=now)
