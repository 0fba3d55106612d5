"""How much work waits and what was done so far, for metrics."""

from dataclasses import dataclass


@dataclass(frozen=True)
class WorkCounts:
    """Of all organisations together. What was done counts from the creation of the database.

    `waiting_since` is when the oldest waiting job was enqueued, 0 where none waits. A window counts as failed once,
    however often it is tried again, and as set aside when it is given up.
    """

    jobs_waiting: int = 0
    jobs_running: int = 0
    waiting_since: int = 0
    stalled_organisations: int = 0
    windows_learned: int = 0
    windows_failed: int = 0
    windows_set_aside: int = 0
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
