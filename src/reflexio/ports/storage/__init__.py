"""Storage answers small questions; ranking, thresholds and merging are decided above it.

Reads and writes are plain synchronous functions of a transaction: `await store.read(fn)` sees one consistent
state, `await store.write(fn)` commits all of it, durably, or nothing. A function may be run again or grouped
with others into one commit, so its only effects are those on its transaction.
"""

from reflexio.ports.storage.changes import Changes as Changes
from reflexio.ports.storage.database import Database as Database
from reflexio.ports.storage.database import Store as Store
from reflexio.ports.storage.database import Tx as Tx
from reflexio.ports.storage.documents import Configs as Configs
from reflexio.ports.storage.documents import Keys as Keys
from reflexio.ports.storage.documents import NewApiKey as NewApiKey
from reflexio.ports.storage.documents import Operations as Operations
from reflexio.ports.storage.documents import Receipt as Receipt
from reflexio.ports.storage.documents import Receipts as Receipts
from reflexio.ports.storage.documents import Spending as Spending
from reflexio.ports.storage.documents import Stalls as Stalls
from reflexio.ports.storage.documents import StoredApiKey as StoredApiKey
from reflexio.ports.storage.erasures import UnfinishedErasure as UnfinishedErasure
from reflexio.ports.storage.exposures import Exposures as Exposures
from reflexio.ports.storage.index import NO_VECTORS as NO_VECTORS
from reflexio.ports.storage.index import IndexBacklog as IndexBacklog
from reflexio.ports.storage.index import IndexCounts as IndexCounts
from reflexio.ports.storage.index import Matched as Matched
from reflexio.ports.storage.index import QueryVector as QueryVector
from reflexio.ports.storage.index import RowTerms as RowTerms
from reflexio.ports.storage.index import TextVectors as TextVectors
from reflexio.ports.storage.index import Unembedded as Unembedded
from reflexio.ports.storage.index import Vectors as Vectors
from reflexio.ports.storage.interactions import Backlog as Backlog
from reflexio.ports.storage.interactions import Days as Days
from reflexio.ports.storage.interactions import Interactions as Interactions
from reflexio.ports.storage.interactions import RemovedRequests as RemovedRequests
from reflexio.ports.storage.interactions import RequestFilter as RequestFilter
from reflexio.ports.storage.interactions import Requests as Requests
from reflexio.ports.storage.interactions import TimeRange as TimeRange
from reflexio.ports.storage.interactions import TurnFilter as TurnFilter
from reflexio.ports.storage.interactions import TurnScope as TurnScope
from reflexio.ports.storage.interactions import Unlearned as Unlearned
from reflexio.ports.storage.interactions import Users as Users
from reflexio.ports.storage.interactions import VersionRequests as VersionRequests
from reflexio.ports.storage.interactions import Waiting as Waiting
from reflexio.ports.storage.interactions import WaitingUsers as WaitingUsers
from reflexio.ports.storage.learnings import FinishedStep as FinishedStep
from reflexio.ports.storage.learnings import LearnedWindow as LearnedWindow
from reflexio.ports.storage.learnings import LearningCounts as LearningCounts
from reflexio.ports.storage.learnings import LearningFilter as LearningFilter
from reflexio.ports.storage.learnings import Learnings as Learnings
from reflexio.ports.storage.learnings import LineageEvent as LineageEvent
from reflexio.ports.storage.learnings import Windows as Windows
from reflexio.ports.storage.optimisations import Optimisations as Optimisations
from reflexio.ports.storage.optimisations import StoredCandidate as StoredCandidate
from reflexio.ports.storage.optimisations import StoredEvaluation as StoredEvaluation
from reflexio.ports.storage.pools import Cluster as Cluster
from reflexio.ports.storage.pools import Member as Member
from reflexio.ports.storage.pools import Pool as Pool
from reflexio.ports.storage.pools import Pools as Pools
from reflexio.ports.storage.sessions import SessionFilter as SessionFilter
from reflexio.ports.storage.sessions import Sessions as Sessions
from reflexio.ports.storage.sessions import SessionSummary as SessionSummary
from reflexio.ports.storage.transfers import StoredRequest as StoredRequest
from reflexio.ports.storage.transfers import Transfers as Transfers
