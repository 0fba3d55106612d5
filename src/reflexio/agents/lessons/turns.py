"""Taking turns: who saves a lesson looks first whether it is known, and two who looked at once would both save it.

This holds among the runs of one event loop. Processes side by side may still keep a lesson twice.
"""

import asyncio
from collections.abc import Hashable
from weakref import WeakKeyDictionary, WeakValueDictionary

_LOCKS: "WeakKeyDictionary[asyncio.AbstractEventLoop, WeakValueDictionary[Hashable, asyncio.Lock]]"
_LOCKS = WeakKeyDictionary()


def turn(*whose: Hashable) -> asyncio.Lock:
    """The lock of a store and a user. Stores are often made anew for each run, so it is not theirs to keep."""
    return _LOCKS.setdefault(asyncio.get_running_loop(), WeakValueDictionary()).setdefault(whose, asyncio.Lock())
