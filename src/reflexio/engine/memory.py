"""A journal in memory, for tests. It lives as long as the process."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from reflexio.errors import LeaseLost
from reflexio.ports.work import ENDED, ClaimedJob, EnqueuedJob, Job, State, StepResult, WaitingJob


@dataclass
class _JournalEntry:
    enqueued: EnqueuedJob
    worker: str = ""
    claims: int = 0
    ended_at: int = 0
    results: dict[str, StepResult] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        return self.enqueued.job.state in ENDED

    def change(self, job: Job) -> None:
        self.enqueued = replace(self.enqueued, job=job)


class MemoryJournal:
    """An engine that gets the journal of another one continues where that one was stopped. Leases do not expire."""

    def __init__(self) -> None:
        self._entries: dict[str, _JournalEntry] = {}
        self._leader = ""

    async def add(self, enqueued: EnqueuedJob, now: int) -> bool:
        if enqueued.job.key in self._entries:
            return False
        self._entries[enqueued.job.key] = _JournalEntry(enqueued)
        return True

    def finished_steps(self, key: str) -> list[str]:
        """The names of the steps whose results are kept."""
        return list(self._entries[key].results)

    async def get(self, key: str) -> Job | None:
        entry = self._entries.get(key)
        return entry.enqueued.job if entry else None

    async def ended(self, keys: Collection[str]) -> list[Job]:
        return [entry.enqueued.job for key in keys if (entry := self._entries.get(key)) and entry.is_over]

    async def waiting(self, most: int) -> list[WaitingJob]:
        lanes = {entry.enqueued.lane for entry in self._entries.values() if entry.worker}
        jobs: list[WaitingJob] = []
        for key, entry in self._entries.items():
            if not entry.is_over and entry.enqueued.lane not in lanes:
                lanes.add(entry.enqueued.lane)
                jobs.append(WaitingJob(key, entry.enqueued.lane, entry.enqueued.organisation))
        return jobs[:most]

    async def claim(self, worker: str, keys: Collection[str]) -> list[ClaimedJob]:
        free = {waiting.key for waiting in await self.waiting(len(self._entries))}
        return [self._claim(self._entries[key], worker) for key in keys if key in free]

    def _claim(self, entry: _JournalEntry, worker: str) -> ClaimedJob:
        entry.worker, entry.claims = worker, entry.claims + 1
        entry.change(replace(entry.enqueued.job, state="running"))
        return ClaimedJob(entry.enqueued.job, entry.enqueued.data, entry.claims, dict(entry.results))

    async def beat(self, worker: str) -> dict[str, State]:
        return {key: entry.enqueued.job.state for key, entry in self._entries.items() if entry.worker == worker}

    async def answer(self, claimed: ClaimedJob, step: str, result: StepResult) -> None:
        self._held(claimed).results[step] = result

    async def end(self, claimed: ClaimedJob, job: Job, now: int) -> None:
        entry = self._held(claimed)
        entry.change(job)
        entry.worker, entry.ended_at = "", now
        entry.results.clear()

    def _held(self, claimed: ClaimedJob) -> _JournalEntry:
        entry = self._entries[claimed.job.key]
        if entry.claims != claimed.claim or entry.is_over:
            raise LeaseLost
        return entry

    async def cancel(self, key: str, now: int) -> bool:
        entry = self._entries.get(key)
        if entry is None or entry.is_over:
            return False
        entry.change(replace(entry.enqueued.job, state="cancelled"))
        entry.ended_at = now
        entry.results.clear()
        return True

    async def free_lane(self, claimed: ClaimedJob) -> None:
        entry = self._entries.get(claimed.job.key)
        if entry and entry.claims == claimed.claim:
            entry.worker = ""

    async def give_back(self, worker: str) -> None:
        for entry in self._entries.values():
            if entry.worker == worker:
                entry.worker = ""

    async def adopt(self) -> None:
        for entry in self._entries.values():
            entry.worker = ""

    async def lead(self, holder: str) -> bool:
        self._leader = self._leader or holder
        return self._leader == holder

    async def has_leader(self) -> bool:
        return bool(self._leader)

    async def resign(self, holder: str) -> None:
        if self._leader == holder:
            self._leader = ""

    async def forget(self, before: int, limit: int) -> int:
        ended = ((key, entry) for key, entry in self._entries.items() if entry.is_over)
        old = [key for key, entry in ended if entry.ended_at < before][:limit]
        for key in old:
            del self._entries[key]
        return len(old)
