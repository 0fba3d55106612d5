"""The lineage of one learning as a graph: what it was made of, what it replaced, and what was made of it.

Every part is bounded, so that a playbook with hundreds of sources is read as fast as one with two.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reflexio.learning.wording_history import WordingVersion, wording_history
from reflexio.models.interaction import Interaction
from reflexio.models.learning import Kind, Learning, Status
from reflexio.models.paging import Page
from reflexio.ports.storage import LearningFilter, LineageEvent, Store, Tx
from reflexio.retrieval.filters import by_public_id, get_one

MOST_SOURCES = 8
"""Sources that are read at once; the others are on the next pages."""
MOST_REPLACED, MOST_MADE = 6, 6
MOST_CHECKED = 200
"""Retired learnings of the same user that are looked through for those that this one replaced."""


@dataclass(frozen=True)
class LineageSource:
    """The turns that something was learned from: what was cited, and in which session.

    `playbook` is the user playbook between the window and an agent playbook, if it is still there. `turn_count` counts
    the turns of the window; `cited` has those of them that the learning cites and that are still stored.
    """

    user_id: str
    session_id: str
    cited: tuple[Interaction, ...]
    turn_count: int
    quote: str = ""
    playbook: Learning | None = None

    @property
    def at(self) -> int:
        return self.cited[0].created_at if self.cited else 0


@dataclass(frozen=True)
class Lineage:
    """One learning with its neighbours in the graph. `sources` begin at number `start` of `source_count`.

    `replaced` are what it replaced, `successors` what replaced it, and `made` the agent playbooks that were made of
    a user playbook.
    """

    learning: Learning
    sources: tuple[LineageSource, ...]
    source_count: int
    start: int
    replaced: tuple[Learning, ...]
    successors: tuple[Learning, ...]
    made: tuple[Learning, ...]
    events: tuple[LineageEvent, ...]
    versions: tuple[WordingVersion, ...]


async def lineage(store: Store, kind: Kind, public_id: str, *, start: int = 0) -> Lineage:
    """The lineage of a learning, with a page of its sources. Raises NotFound."""
    where = by_public_id(kind, public_id)
    return await store.read(lambda tx: _read(tx, get_one(tx, where), start))


def _read(tx: Tx, learning: Learning, start: int) -> Lineage:
    windows = learning.details.get("source_windows", [])
    is_aggregated = learning.kind is Kind.AGENT_PLAYBOOK
    sources = _windows_of(tx, windows[start : start + MOST_SOURCES]) if is_aggregated else _own_window(tx, learning)
    events = tx.learnings.lineage(learning.id)
    return Lineage(
        learning,
        tuple(sources),
        len(windows) if is_aggregated else len(sources),
        start if is_aggregated else 0,
        tuple(_replaced(tx, learning)),
        tuple(_successors(tx, learning)),
        tuple(_made(tx, learning)),
        tuple(events),
        tuple(wording_history(learning, events)),
    )


def _windows_of(tx: Tx, windows: Sequence[dict[str, object]]) -> list[LineageSource]:
    """The windows of an agent playbook, with the user playbooks that were learned from them."""
    numbers = [_number(window["user_playbook_id"]) for window in windows]
    playbooks = {number: row for number, row in tx.learnings.many(numbers).items() if row.kind is Kind.USER_PLAYBOOK}
    found = []
    for number, window in zip(numbers, windows, strict=True):
        playbook, turns = playbooks.get(number), _numbers(window.get("source_interaction_ids"))
        cited = _numbers(playbook.details.get("source_interaction_ids")) if playbook else ()
        found.append(_window(tx, playbook, cited or turns, len(turns or cited)))
    return found


def _own_window(tx: Tx, learning: Learning) -> list[LineageSource]:
    """The window that a profile or a user playbook was learned from. What was added by hand has none."""
    cited = _numbers(learning.details.get("source_interaction_ids"))
    turns = _numbers(learning.details.get("window_interaction_ids")) or cited
    return [_window(tx, learning, cited, len(turns))] if cited else []


def _window(tx: Tx, learning: Learning | None, cited: Sequence[int], turn_count: int) -> LineageSource:
    turns = tx.interactions.many(cited)
    kept = tuple(turns[number] for number in cited if number in turns)
    request = tx.requests.get(kept[0].request_id) if kept else None
    return LineageSource(
        learning.user_id if learning else kept[0].user_id if kept else "",
        request.session_id if request else "",
        kept,
        turn_count,
        str(learning.details.get("source_span") or "") if learning else "",
        learning if learning and learning.kind is Kind.USER_PLAYBOOK else None,
    )


def _replaced(tx: Tx, learning: Learning) -> Iterable[Learning]:
    numbers = _numbers(learning.details.get("replaces"))[:MOST_REPLACED]
    rows = tx.learnings.many(numbers)
    yield from (rows[number] for number in numbers if number in rows)
    if learning.kind is Kind.AGENT_PLAYBOOK:
        return
    retired = LearningFilter(learning.kind, user_id=learning.user_id, statuses=(Status.MERGED, Status.SUPERSEDED))
    same_user = tx.learnings.page(retired, Page(MOST_CHECKED)).rows
    yield from [row for row in same_user if learning.public_id in _successor_ids(row)][:MOST_REPLACED]


def _successors(tx: Tx, learning: Learning) -> Iterable[Learning]:
    for public_id in _successor_ids(learning):
        successor = tx.learnings.get(by_public_id(learning.kind, public_id))
        if successor:
            yield successor


def _successor_ids(learning: Learning) -> list[str]:
    named = (learning.details.get("superseded_by"), learning.details.get("merged_into"))
    return list(dict.fromkeys(str(public_id) for public_id in named if public_id))


def _made(tx: Tx, learning: Learning) -> Iterable[Learning]:
    """The agent playbooks of the cluster that a user playbook belongs to, as far as it is among their sources."""
    if learning.kind is not Kind.USER_PLAYBOOK or not learning.cluster:
        return []
    where = LearningFilter(
        Kind.AGENT_PLAYBOOK,
        agent_version=learning.agent_version,
        name=learning.name,
        clusters=(learning.cluster,),
        statuses=None,
    )
    rows = tx.learnings.page(where, Page(MOST_MADE)).rows
    return [row for row in rows if any(_is_of(window, learning) for window in row.details.get("source_windows", []))]


def _is_of(window: dict[str, object], playbook: Learning) -> bool:
    return _number(window["user_playbook_id"]) == playbook.id


def _number(value: object) -> int:
    return int(str(value))


def _numbers(values: object) -> tuple[int, ...]:
    return tuple(map(_number, values)) if isinstance(values, list | tuple) else ()
