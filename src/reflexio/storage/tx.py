"""One transaction of one organisation, made of the areas it may touch."""

from functools import cached_property

from sqlalchemy import Connection

from reflexio.storage.documents import SqlConfigs, SqlReceipts
from reflexio.storage.interactions import SqlInteractions
from reflexio.storage.learnings import SqlLearnings
from reflexio.storage.operations import SqlOperations
from reflexio.storage.optimisations import SqlOptimisations
from reflexio.storage.pools import SqlPools
from reflexio.storage.requests import SqlRequests
from reflexio.storage.search.shelves import Shelves
from reflexio.storage.spending import SqlSpending
from reflexio.storage.stalls import SqlStalls
from reflexio.storage.users import SqlUsers
from reflexio.storage.windows import SqlWindows


class SqlTx:
    def __init__(self, connection: Connection, org_id: str, shelves: Shelves) -> None:
        self._connection = connection
        self._org = org_id
        self._shelves = shelves

    @cached_property
    def requests(self) -> SqlRequests:
        return SqlRequests(self._connection, self._org, self.interactions)

    @cached_property
    def interactions(self) -> SqlInteractions:
        return SqlInteractions(self._connection, self._org, self._shelves)

    @cached_property
    def users(self) -> SqlUsers:
        return SqlUsers(self._connection, self._org)

    @cached_property
    def learnings(self) -> SqlLearnings:
        return SqlLearnings(self._connection, self._org, self._shelves)

    @cached_property
    def windows(self) -> SqlWindows:
        return SqlWindows(self._connection, self._org)

    @cached_property
    def pools(self) -> SqlPools:
        return SqlPools(self._connection, self._org)

    @cached_property
    def receipts(self) -> SqlReceipts:
        return SqlReceipts(self._connection, self._org)

    @cached_property
    def configs(self) -> SqlConfigs:
        return SqlConfigs(self._connection, self._org)

    @cached_property
    def stalls(self) -> SqlStalls:
        return SqlStalls(self._connection, self._org)

    @cached_property
    def operations(self) -> SqlOperations:
        return SqlOperations(self._connection, self._org)

    @cached_property
    def spending(self) -> SqlSpending:
        return SqlSpending(self._connection, self._org)

    @cached_property
    def optimisations(self) -> SqlOptimisations:
        return SqlOptimisations(self._connection, self._org)
