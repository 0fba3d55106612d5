"""Storage answers small questions; ranking, thresholds and merging are decided above it.

Reads and writes are plain synchronous functions of a transaction: `await store.read(fn)` sees one consistent
state, `await store.write(fn)` commits all of it, durably, or nothing. A function may be run again or grouped
with others into one commit, so its only effects are those on its transaction.
"""

from reflexio.ports.storage.database import Database, Store, Tx
from reflexio.ports.storage.documents import Configs, Key, Keys, Receipt, Receipts, Spending, Stalls
from reflexio.ports.storage.finding import Matched, QueryVector, Unembedded, Vectors
from reflexio.ports.storage.learnings import LearnedWindow, LearningFilter, Learnings, LineageEvent, Tally, Windows
from reflexio.ports.storage.operations import Operations
from reflexio.ports.storage.optimisations import Evaluated, Optimisations, Wording
from reflexio.ports.storage.pools import Cluster, Member, Pool, Pools
from reflexio.ports.storage.times import TimeRange
from reflexio.ports.storage.turns import (
    Backlog,
    Interactions,
    RequestFilter,
    Requests,
    TurnFilter,
    TurnScope,
    Unlearned,
    Users,
    Waiting,
)

__all__ = [
    "Backlog",
    "Cluster",
    "Configs",
    "Database",
    "Evaluated",
    "Interactions",
    "Key",
    "Keys",
    "LearnedWindow",
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
    "Tally",
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
    "Wording",
]
