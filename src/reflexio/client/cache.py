"""What was read a moment ago need not be read again, unless this client changed it since."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel

A = TypeVar("A", bound=BaseModel)
MOST = 1000


class Cache:
    """Answers by topic and question. `forget` also discards answers that are still on their way."""

    def __init__(self, seconds: float = 600, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._answers: OrderedDict[tuple[str, str], tuple[float, BaseModel]] = OrderedDict()
        self._changes: dict[str, int] = {}
        self._doubted: dict[str, float] = {}

    def change(self, topic: str) -> int:
        """How often the topic was forgotten. Ask before reading, and hand it to `put` with what was read."""
        with self._lock:
            return self._changes.get(topic, 0)

    def get(self, topic: str, question: str, kind: type[A]) -> A | None:
        with self._lock:
            until, answer = self._answers.get((topic, question), (0.0, None))
            fresh = answer is not None and until > self._monotonic()
        # A copy: what one caller does to its lists is not another's answer.
        return answer.model_copy(deep=True) if fresh and isinstance(answer, kind) else None

    def put(self, topic: str, question: str, answer: BaseModel, change: int) -> None:
        with self._lock:
            if self._changes.get(topic, 0) != change or self._doubted.get(topic, 0.0) > self._monotonic():
                return
            kept = answer.model_copy(deep=True)
            self._answers[topic, question] = (self._monotonic() + self._seconds, kept)
            self._answers.move_to_end((topic, question))
            while len(self._answers) > MOST:
                self._answers.popitem(last=False)

    def forget(self, *topics: str) -> None:
        with self._lock:
            for topic in topics:
                self._changes[topic] = self._changes.get(topic, 0) + 1
            for key in [key for key in self._answers if key[0] in topics]:
                del self._answers[key]

    def doubt(self, *topics: str) -> None:
        """The server is changing the topics: nothing is kept of them for as long as an answer would be."""
        self.forget(*topics)
        with self._lock:
            for topic in topics:
                self._doubted[topic] = self._monotonic() + self._seconds
