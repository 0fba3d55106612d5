"""What a worker thread waits on: it looks again when the bell is rung, and leaves when it is stopped."""

import threading


class Bell:
    """Stands in for the `threading.Event` that tells a polling thread to stop, and can wake it as well."""

    def __init__(self) -> None:
        self._rung = threading.Event()
        self._stopped = False

    def ring(self) -> None:
        self._rung.set()

    def stop(self) -> None:
        self._stopped = True
        self._rung.set()

    def is_set(self) -> bool:
        return self._stopped

    def wait(self, timeout: float | None = None) -> bool:
        self._rung.wait(timeout)
        # Cleared before the thread looks: a ring while it looks makes it look once more.
        self._rung.clear()
        return self._stopped
