"""Which learnings of an import are stored already.

A profile is recognised by its id. A playbook is recognised by its kind, user, agent version, time of creation and
wording: the present one or a former one, so that an edit does not bring back what it replaced.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

from reflexio.models.learning import Kind, Learning
from reflexio.models.paging import Page
from reflexio.ports.storage import LearningFilter, TimeRange, Tx

MOST_AT_ONCE = 2000
"""Playbooks of the time of an import that are read together; of more, those of each user and second."""
Origin = tuple[Kind, str, str, int]
Identity = tuple[object, ...]


class StoredLearnings:
    """What an organisation has of the learnings of one call, read in a few queries."""

    def __init__(self, tx: Tx, learnings: Sequence[Learning]) -> None:
        self._tx = tx
        self._added: Counter[Identity] = Counter()
        self._numbers = self._read_profiles([learning.key for learning in learnings if learning.key])
        self._playbooks: dict[Origin, list[Learning]] = defaultdict(list)
        self._is_complete = {
            kind: self._read_playbooks(kind, [row for row in learnings if row.kind is kind and not row.key])
            for kind in (Kind.USER_PLAYBOOK, Kind.AGENT_PLAYBOOK)
        }

    def find(self, learning: Learning, copy_number: int) -> int | None:
        """The number of the row that it is; None when it is to be stored.

        `copy_number` counts learnings before it that say the same: the second of two is the second row that does.
        """
        if learning.key:
            # One that the same call has already is stored once; its number is not known yet.
            return 0 if self._added[_identity(learning)] else self._numbers.get(learning.key)
        same = [row.id for row in self._of_same_origin(learning) if self._says(row, learning)]
        return same[copy_number] if copy_number < len(same) else None

    def add(self, learning: Learning) -> None:
        """Notes that it is about to be stored."""
        self._added[_identity(learning)] += 1

    def _read_profiles(self, keys: list[str]) -> dict[str, int]:
        if not keys:
            return {}
        where = LearningFilter(Kind.PROFILE, keys=tuple(dict.fromkeys(keys)), statuses=None)
        return {row.key: row.id for row in self._tx.learnings.page(where, Page(len(keys))).rows}

    def _read_playbooks(self, kind: Kind, learnings: Sequence[Learning]) -> bool:
        """Reads those of the time of the learnings; False when there are too many."""
        if not learnings:
            return True
        times = [learning.created_at for learning in learnings]
        where = LearningFilter(kind, statuses=None, within=TimeRange(min(times), max(times)))
        listing = self._tx.learnings.page(where, Page(MOST_AT_ONCE))
        if listing.end is not None:
            return False
        for row in sorted(listing.rows, key=lambda row: row.id):
            self._playbooks[_origin(row)].append(row)
        return True

    def _of_same_origin(self, learning: Learning) -> list[Learning]:
        origin = _origin(learning)
        if self._is_complete.get(learning.kind, False) or origin in self._playbooks:
            return self._playbooks.get(origin, [])
        at = TimeRange(learning.created_at, learning.created_at)
        where = LearningFilter(learning.kind, user_id=learning.user_id, statuses=None, within=at)
        rows = self._tx.learnings.page(where, Page(MOST_AT_ONCE)).rows
        self._playbooks[origin] = sorted((row for row in rows if _origin(row) == origin), key=lambda row: row.id)
        return self._playbooks[origin]

    def _says(self, row: Learning, learning: Learning) -> bool:
        """Whether a row says, or once said, what the learning says."""
        wording = {"trigger": row.trigger, "content": row.content}
        wanted = {"trigger": learning.trigger, "content": learning.content}
        if wording == wanted:
            return True
        for event in reversed(self._tx.learnings.lineage(row.id)):
            former = event.details.get("wording", {})
            wording = {name: former.get(name, text) for name, text in wording.items()}
            if former and wording == wanted:
                return True
        return False


def _origin(learning: Learning) -> Origin:
    return learning.kind, learning.user_id, learning.agent_version, learning.created_at


def _identity(learning: Learning) -> Identity:
    return (learning.kind, learning.key) if learning.key else (*_origin(learning), learning.trigger, learning.content)
