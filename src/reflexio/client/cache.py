"""Responses of reads are kept for some minutes, unless this client changes what they tell about."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel

A = TypeVar("A", bound=BaseModel)

MOST_RESPONSES = 1000
PROFILES, AGENT_PLAYBOOKS = "profiles", "agent_playbooks"
LEARNINGS = (PROFILES, AGENT_PLAYBOOKS)
"""Topics that learning changes, some time after it was asked for."""


class Cache:
    """Responses by topic and question. `forget` also discards responses that are still on their way."""

    def __init__(self, seconds: float = 600, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._responses: OrderedDict[tuple[str, str], tuple[float, BaseModel]] = OrderedDict()
        self._changes: dict[str, int] = {}
        self._paused_until: dict[str, float] = {}

    def change(self, topic: str) -> int:
        """How often the topic was forgotten. Call it before reading, and pass it to `put` with the response."""
        with self._lock:
            return self._changes.get(topic, 0)

    def get(self, topic: str, question: str, response_type: type[A]) -> A | None:
        with self._lock:
            until, response = self._responses.get((topic, question), (0.0, None))
            is_fresh = response is not None and until > self._monotonic()
        # A copy: callers may change the lists inside.
        return response.model_copy(deep=True) if is_fresh and isinstance(response, response_type) else None

    def put(self, topic: str, question: str, response: BaseModel, change: int) -> None:
        with self._lock:
            if self._changes.get(topic, 0) != change or self._paused_until.get(topic, 0.0) > self._monotonic():
                return
            copy = response.model_copy(deep=True)
            self._responses[topic, question] = (self._monotonic() + self._seconds, copy)
            self._responses.move_to_end((topic, question))
            while len(self._responses) > MOST_RESPONSES:
                self._responses.popitem(last=False)

    def forget(self, *topics: str) -> None:
        with self._lock:
            for topic in topics:
                self._changes[topic] = self._changes.get(topic, 0) + 1
            for key in [key for key in self._responses if key[0] in topics]:
                del self._responses[key]

    def pause(self, *topics: str) -> None:
        """Keeps nothing of these topics for as long as a response would be kept: the server is changing them."""
        self.forget(*topics)
        with self._lock:
            for topic in topics:
                self._paused_until[topic] = self._monotonic() + self._seconds
