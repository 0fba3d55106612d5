"""One transaction of one organisation: all the tables that it may touch."""

from functools import cached_property

from sqlalchemy import Connection

from reflexio.storage.erasure import SqlErasures
from reflexio.storage.fulltext.prepared import PreparedTerms
from reflexio.storage.tables.documents import SqlConfigs, SqlReceipts, SqlSpending, SqlStalls
from reflexio.storage.tables.exposures import SqlExposures
from reflexio.storage.tables.interactions import SqlInteractions, SqlRequests, SqlUsers
from reflexio.storage.tables.learnings import SqlLearnings, SqlWindows
from reflexio.storage.tables.operations import SqlOperations
from reflexio.storage.tables.optimisations import SqlOptimisations
from reflexio.storage.tables.pools import SqlPools
from reflexio.storage.tables.sessions import SqlSessions
from reflexio.storage.tables.transfers import SqlTransfers
from reflexio.storage.vectors.search import VectorSearch


class SqlTx:
    def __init__(
        self,
        connection: Connection,
        org_id: str,
        vectors: VectorSearch,
        max_daily_tokens: int | None = None,
        terms: PreparedTerms | None = None,
    ) -> None:
        self._connection = connection
        self._org = org_id
        self._vectors = vectors
        self._max_daily_tokens = max_daily_tokens
        self._terms = terms

    # Made when they are first used: most transactions touch two or three of them.
    requests = cached_property(lambda tx: SqlRequests(tx._connection, tx._org))
    interactions = cached_property(lambda tx: SqlInteractions(tx._connection, tx._org, tx._vectors))
    sessions = cached_property(lambda tx: SqlSessions(tx._connection, tx._org))
    users = cached_property(lambda tx: SqlUsers(tx._connection, tx._org))
    learnings = cached_property(lambda tx: SqlLearnings(tx._connection, tx._org, tx._vectors, tx._terms))
    exposures = cached_property(lambda tx: SqlExposures(tx._connection, tx._org))
    windows = cached_property(lambda tx: SqlWindows(tx._connection, tx._org))
    pools = cached_property(lambda tx: SqlPools(tx._connection, tx._org))
    receipts = cached_property(lambda tx: SqlReceipts(tx._connection, tx._org))
    configs = cached_property(lambda tx: SqlConfigs(tx._connection, tx._org))
    stalls = cached_property(lambda tx: SqlStalls(tx._connection, tx._org))
    operations = cached_property(lambda tx: SqlOperations(tx._connection, tx._org))
    erasures = cached_property(lambda tx: SqlErasures(tx._connection, tx._org))
    spending = cached_property(lambda tx: SqlSpending(tx._connection, tx._org, tx._max_daily_tokens))
    optimisations = cached_property(lambda tx: SqlOptimisations(tx._connection, tx._org))
    transfers = cached_property(lambda tx: SqlTransfers(tx._connection, tx._org))
