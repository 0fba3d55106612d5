"""What an optimisation may spend, and has spent. Accounted once, however often a crash makes it count again.

Costs are told with the answers of the models, after a crash too, and written along with what the search writes
anyway. The questions between two such writes are always the same ones, so their number tells what was accounted.
"""

from dataclasses import dataclass, field

from reflexio.errors import Conflict
from reflexio.models.learned import Spend
from reflexio.models.optimisation import PlaybookOptimizationJob
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Store, Tx
from reflexio.usecases.configure import stored
from reflexio.usecases.optimise import BUDGET
from reflexio.usecases.spend import left, record, tokens

OPERATION = "optimise"
LOOK_EVERY = 5
"""Seconds that a look at the account is trusted."""


@dataclass(frozen=True)
class Bill:
    """What is to be accounted, and how many questions were asked by then."""

    spends: tuple[Spend, ...]
    questions: int


def account(tx: Tx, job: PlaybookOptimizationJob, bill: Bill, now: int) -> PlaybookOptimizationJob:
    """The job with its bill paid, unless that was done before a crash."""
    if bill.questions <= job.accounted_questions:
        return job
    for spend in bill.spends:
        record(tx, spend, OPERATION, now)
    return job.changed(accounted_questions=bill.questions)


@dataclass
class Purse:
    """The organisation's daily budget, as far as this run knows. Others spend from it too, so it is looked at again."""

    store: Store
    clock: Clock
    _questions: int = 0
    _unpaid: list[Spend] = field(default_factory=list)
    _left: float = 0.0
    _looked_at: int | None = None

    async def check(self) -> None:
        now = self.clock.now()
        if self._looked_at is None or abs(now - self._looked_at) >= LOOK_EVERY:
            known = await self.store.read(lambda tx: left(tx, stored(tx), now))
            self._left, self._looked_at = known - sum(map(tokens, self._unpaid)), now
        if self._left <= 0:
            raise Conflict(BUDGET)

    def pay(self, spend: Spend) -> None:
        self._questions += 1
        self._unpaid.append(spend)
        self._left -= tokens(spend)

    def bill(self) -> Bill:
        spends, self._unpaid = self._unpaid, []
        return Bill(tuple(spends), self._questions)
