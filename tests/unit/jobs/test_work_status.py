from typing import Any, cast

from reflexio.errors import StorageUnavailable
from reflexio.jobs.work_status import WorkStatus
from reflexio.ports.storage import Database, WorkCounts
from reflexio.ports.work import Leadership


class Parts:
    """A database and a leadership that can fail."""

    is_away = False

    async def work_counts(self) -> WorkCounts:
        if self.is_away:
            raise StorageUnavailable("away")
        return WorkCounts(jobs_waiting=3)

    async def is_taken(self) -> bool:
        return True


async def test_while_the_database_is_away_the_last_numbers_stay_and_say_so() -> None:
    parts: Any = Parts()
    status = WorkStatus()
    database, leadership = cast(Database, parts), cast(Leadership, parts)
    await status.refresh(database, leadership)
    assert (status.database_answers, status.has_worker, status.counts.jobs_waiting) == (True, True, 3)
    parts.is_away = True
    await status.refresh(database, leadership)
    assert (status.database_answers, status.counts.jobs_waiting) == (False, 3)
    parts.is_away = False
    await status.refresh(database, leadership)
    assert status.database_answers
