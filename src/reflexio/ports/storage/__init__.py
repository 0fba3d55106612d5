"""Storage answers small questions; ranking, thresholds and merging are decided above it.

Reads and writes are plain synchronous functions of a transaction: `await store.read(fn)` sees one consistent
state, `await store.write(fn)` commits all of it, durably, or nothing. A function may be run again or grouped
with others into one commit, so its only effects are those on its transaction.
"""

from reflexio.ports.storage.database import Database, Store, Tx
from reflexio.ports.storage.documents import (
    Configs,
    Keys,
    Operations,
    Receipt,
    Receipts,
    Spending,
    Stalls,
    StoredApiKey,
)
from reflexio.ports.storage.index import Matched, QueryVector, Unembedded, Vectors
from reflexio.ports.storage.interactions import (
    Backlog,
    Interactions,
    RequestFilter,
    Requests,
    TimeRange,
    TurnFilter,
    TurnScope,
    Unlearned,
    Users,
    Waiting,
)
from reflexio.ports.storage.learnings import (
    LearnedWindow,
    LearningCounts,
    LearningFilter,
    Learnings,
    LineageEvent,
    Windows,
)
from reflexio.ports.storage.optimisations import Optimisations, StoredCandidate, StoredEvaluation
from reflexio.ports.storage.pools import Cluster, Member, Pool, Pools

__all__ = [
    "Backlog",
    "Cluster",
    "Configs",
    "Database",
    "Interactions",
    "Keys",
    "LearnedWindow",
    "LearningCounts",
    "LearningFilter",
    "Learnings",
    "LineageEvent",
    "Matched",
    "Member",
    "Operations",
    "Optimisations",
    "Pool",
    "Pools",
    "QueryVector",
    "Receipt",
    "Receipts",
    "RequestFilter",
    "Requests",
    "Spending",
    "Stalls",
    "Store",
    "StoredApiKey",
    "StoredCandidate",
    "StoredEvaluation",
    "TimeRange",
    "TurnFilter",
    "TurnScope",
    "Tx",
    "Unembedded",
    "Unlearned",
    "Users",
    "Vectors",
    "Waiting",
    "Windows",
]
