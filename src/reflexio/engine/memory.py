"""A journal in memory, for tests. It lives as long as the process."""

from dataclasses import dataclass, field, replace

from reflexio.ports.work import ENDED, EnqueuedJob, Job, StepResult


@dataclass
class _JournalEntry:
    enqueued: EnqueuedJob
    ended_at: int = 0
    results: dict[str, StepResult] = field(default_factory=dict)


class MemoryJournal:
    """An engine that gets the journal of another one continues where that one was stopped."""

    def __init__(self) -> None:
        self._entries: dict[str, _JournalEntry] = {}

    async def add(self, enqueued: EnqueuedJob, now: int) -> bool:
        if enqueued.job.key in self._entries:
            return False
        self._entries[enqueued.job.key] = _JournalEntry(enqueued)
        return True

    async def get(self, key: str) -> Job | None:
        entry = self._entries.get(key)
        return entry.enqueued.job if entry else None

    async def unfinished(self) -> list[EnqueuedJob]:
        entries = [entry for entry in self._entries.values() if entry.enqueued.job.state not in ENDED]
        return [replace(entry.enqueued, results=dict(entry.results)) for entry in entries]

    async def begin(self, key: str) -> None:
        entry = self._entries[key]
        job = replace(entry.enqueued.job, state="running")
        entry.enqueued = replace(entry.enqueued, job=job, begun=entry.enqueued.begun + 1)

    async def answer(self, key: str, step: str, result: StepResult) -> None:
        self._entries[key].results[step] = result

    async def end(self, job: Job, now: int) -> None:
        entry = self._entries[job.key]
        entry.enqueued, entry.ended_at = replace(entry.enqueued, job=job), now
        entry.results.clear()

    async def forget(self, before: int, limit: int) -> int:
        ended = ((key, entry) for key, entry in self._entries.items() if entry.enqueued.job.state in ENDED)
        old = [key for key, entry in ended if entry.ended_at < before][:limit]
        for key in old:
            del self._entries[key]
        return len(old)
