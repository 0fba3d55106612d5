"""When somebody has written to the database, in this process or another."""

from typing import Protocol


class Changes(Protocol):
    @property
    def version(self) -> int:
        """A number that differs from an earlier one if there was a write in between, and perhaps if there was none."""

    async def wait(self, seen: int, seconds: float) -> int:
        """Returns a number that differs from `seen` as soon as a job was enqueued or has ended, or after so many
        seconds."""
