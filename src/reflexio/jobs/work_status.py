"""What waits and what was done, as a process saw it last: metrics are read without a query."""

from reflexio.errors import StorageUnavailable
from reflexio.ports.storage import Database, WorkCounts
from reflexio.ports.work import Leadership

REFRESH_SECONDS = 5.0


class WorkStatus:
    """Durable work of all organisations, at most some seconds ago.

    `has_worker` says whether a worker runs the schedules; `is_leader` whether it is this process. While the database
    does not answer, `database_answers` is False and the rest is as it was before.
    """

    def __init__(self) -> None:
        self.counts = WorkCounts()
        self.has_worker = False
        self.is_leader = False
        self.database_answers = True

    async def refresh(self, database: Database, leadership: Leadership) -> None:
        try:
            self.has_worker = await leadership.is_taken()
            self.counts = await database.work_counts()
        except StorageUnavailable:
            self.database_answers = False
        else:
            self.database_answers = True
