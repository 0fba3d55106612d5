"""Which of the waiting jobs run next: a fair share of the places for each organisation, and no lane starves another."""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping

from reflexio.ports.fair_share import may_take_place
from reflexio.ports.work import WaitingJob


def choose_jobs(
    waiting: Iterable[WaitingJob], held: Counter[str], places: int, served: Mapping[str, int]
) -> list[WaitingJob]:
    """The jobs to begin now, of jobs in different lanes, oldest first.

    `held` counts the places of each organisation. A free place goes to the organisation that holds the fewest, and
    within it to the lane that was `served` longest ago, which has the smallest number.
    """
    held = Counter(held)
    queues: defaultdict[str, deque[WaitingJob]] = defaultdict(deque)
    for job in sorted(waiting, key=lambda job: served.get(job.lane, 0)):
        queues[job.organisation].append(job)
    chosen: list[WaitingJob] = []
    while waiting_organisations := [name for name in queues if _may_begin(name, held, places, queues)]:
        organisation = min(waiting_organisations, key=held.__getitem__)
        held[organisation] += 1
        chosen.append(queues[organisation].popleft())
        if not queues[organisation]:
            del queues[organisation]
    return chosen


def _may_begin(organisation: str, held: Counter[str], places: int, waiting: Mapping[str, object]) -> bool:
    organisations = len((+held).keys() | waiting.keys())
    return may_take_place(places=places, taken=held.total(), own=held[organisation], organisations=organisations)
