"""A journal that lives as long as the process: the twin for tests."""

from dataclasses import dataclass, field, replace

from reflexio.ports.work import ENDED, Answer, Asked, Job


@dataclass
class _Entry:
    asked: Asked
    ended_at: int = 0
    answers: dict[str, Answer] = field(default_factory=dict)


class MemoryJournal:
    """Give it to the next engine, and that one goes on where this one was stopped."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Entry] = {}

    async def add(self, asked: Asked, now: int) -> bool:
        if asked.job.key in self._jobs:
            return False
        self._jobs[asked.job.key] = _Entry(asked)
        return True

    async def get(self, key: str) -> Job | None:
        entry = self._jobs.get(key)
        return entry.asked.job if entry else None

    async def unfinished(self) -> list[Asked]:
        left = [entry for entry in self._jobs.values() if entry.asked.job.state not in ENDED]
        return [replace(entry.asked, answers=dict(entry.answers)) for entry in left]

    async def begin(self, key: str) -> None:
        entry = self._jobs[key]
        job = replace(entry.asked.job, state="running")
        entry.asked = replace(entry.asked, job=job, begun=entry.asked.begun + 1)

    async def answer(self, key: str, step: str, answer: Answer) -> None:
        self._jobs[key].answers[step] = answer

    async def end(self, job: Job, now: int) -> None:
        entry = self._jobs[job.key]
        entry.asked, entry.ended_at = replace(entry.asked, job=job), now
        entry.answers.clear()

    async def forget(self, before: int, limit: int) -> int:
        ended = ((key, entry.ended_at) for key, entry in self._jobs.items() if entry.asked.job.state in ENDED)
        old = [key for key, at in ended if at < before][:limit]
        for key in old:
            del self._jobs[key]
        return len(old)
