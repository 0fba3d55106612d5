"""Which source windows a candidate is tried in, which of them are held out, and how a window becomes a scenario.

A window holds the ids of turns until it is replayed, so text that a user deletes in the meantime is not kept here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from reflexio.models.config import PlaybookOptimizerConfig
from reflexio.models.extraction import Role, role_of
from reflexio.models.interaction import Interaction
from reflexio.models.learning import Kind, Learning
from reflexio.models.optimisation import ChatMessage, Scenario, Side
from reflexio.ports.storage import Tx
from reflexio.ports.work import Json

MOST_HISTORY = 40
DIGEST_LENGTH = 12
SIDES: Mapping[Role, Side] = {
    "user": "user",
    "agent": "assistant",
    "tool": "assistant",
    "system": "system",
    "developer": "system",
}


def digest(text: str) -> str:
    """A short hash that names windows, wordings and answers in the steps of a run."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:DIGEST_LENGTH]


@dataclass(frozen=True)
class ReplayWindow:
    """One source window: the turns that a user playbook cites, and all turns around them, oldest first."""

    user_playbook_id: int
    user_id: str
    cited: tuple[int, ...]
    turns: tuple[int, ...]

    @property
    def key(self) -> str:
        return digest(f"{self.user_playbook_id}:{','.join(map(str, self.cited))}")

    @classmethod
    def read(cls, document: Json) -> "ReplayWindow":
        return cls(**{**document, "cited": tuple(document["cited"]), "turns": tuple(document["turns"])})


@dataclass(frozen=True)
class WindowSplit:
    """Windows to search with, and windows held out for validation. A single window is used for both.

    `erased` counts the windows that cannot be replayed because their turns were deleted.
    """

    train: tuple[ReplayWindow, ...]
    validation: tuple[ReplayWindow, ...]
    erased: int = 0

    @property
    def all(self) -> tuple[ReplayWindow, ...]:
        return tuple(dict.fromkeys((*self.validation, *self.train)))

    @property
    def held_out(self) -> frozenset[str]:
        return frozenset(window.key for window in self.validation)


def split(windows: Sequence[ReplayWindow], config: PlaybookOptimizerConfig, erased: int = 0) -> WindowSplit:
    """Holds out the first windows and leaves at least one to search with."""
    if len(windows) == 1:
        return WindowSplit(tuple(windows), tuple(windows), erased)
    held_out = min(config.max_validation_windows, len(windows) - 1)
    return WindowSplit(tuple(windows[held_out:]), tuple(windows[:held_out]), erased)


@dataclass(frozen=True)
class _Citation:
    """What is known of one source window: the turns in the playbook's snapshot, which may be the whole window, the
    turns that taught the lesson, and the recorded window, which is empty when the user playbook was deleted."""

    user_playbook_id: int
    snapshot: list[int]
    cited: list[int]
    window: list[int]

    @property
    def turns(self) -> set[int]:
        return {*self.snapshot, *self.cited, *self.window}


def find_windows(tx: Tx, target: Learning, config: PlaybookOptimizerConfig) -> WindowSplit:
    """The source windows of a playbook, in a fixed order. Windows that cite the same turns count once."""
    snapshots = [(target.id, cited)] if (cited := _source_ids(target.details)) else []
    if target.kind is Kind.AGENT_PLAYBOOK:
        sources = target.details.get("source_windows", [])
        snapshots = sorted((source["user_playbook_id"], _source_ids(source)) for source in sources)
    rows = tx.learnings.many([user_playbook_id for user_playbook_id, _ in snapshots])
    details = {row.id: row.details for row in rows.values() if row.kind is Kind.USER_PLAYBOOK}
    citations = []
    for number, snapshot in snapshots:
        known = details.get(number, {})
        recorded = known.get("window_interaction_ids") or []
        citations.append(_Citation(number, snapshot, _source_ids(known) or snapshot, recorded))
    turns = tx.interactions.many(sorted({turn for citation in citations for turn in citation.turns}))
    # Without a recorded window, the window is all that was published together with the cited turns.
    unrecorded = {turn for citation in citations if not citation.window for turn in citation.cited if turn in turns}
    published: dict[str, list[Interaction]] = {}
    for turn in tx.interactions.of_requests(sorted({turns[turn_id].request_id for turn_id in unrecorded})):
        published.setdefault(turn.request_id, []).append(turn)
    windows: dict[tuple[int, ...], ReplayWindow] = {}
    erased = 0
    for citation in citations:
        window = _build_window(citation, turns, published)
        if window is None:
            erased += 1
        else:
            windows.setdefault(tuple(citation.snapshot) or window.cited, window)
    return split(list(windows.values()), config, erased)


def _source_ids(details: Mapping[str, Any]) -> list[int]:
    return sorted(set(details.get("source_interaction_ids") or ()))


def _build_window(
    citation: _Citation, turns: Mapping[int, Interaction], published: Mapping[str, Sequence[Interaction]]
) -> ReplayWindow | None:
    """None when cited turns were deleted, or when the window has no text of a user."""
    cited = citation.cited
    if not cited or not turns.keys() >= set(cited):
        return None
    around = {turn_id: turns[turn_id] for turn_id in citation.turns if turn_id in turns}
    if not citation.window:
        requests = {turns[turn_id].request_id for turn_id in cited}
        around |= {turn.interaction_id: turn for request in requests for turn in published.get(request, ())}
    user_id = turns[cited[0]].user_id
    own = [turn for _, turn in sorted(around.items()) if turn.user_id == user_id]
    if not any(message.role == "user" and message.content for message in map(chat_message, own)):
        return None
    return ReplayWindow(citation.user_playbook_id, user_id, tuple(cited), tuple(turn.interaction_id for turn in own))


def explain_shortage(windows: WindowSplit, config: PlaybookOptimizerConfig) -> str:
    """Why there are too few windows to adopt a winner; empty when there are enough."""
    erased = f" ({windows.erased} more cannot be replayed: their turns were deleted)" if windows.erased else ""
    if not windows.all:
        return f"The playbook has no source windows to replay{erased}."
    if len(windows.validation) >= config.min_commit_windows:
        return ""
    return (
        f"{len(windows.all)} source window(s){erased} leave {len(windows.validation)} to hold out for validation, "
        f"and min_commit_windows is {config.min_commit_windows}: no winner could be adopted."
    )


def build_scenario(
    window: ReplayWindow, turns: Mapping[int, Interaction], lesson: str, max_turns: int
) -> Scenario | None:
    """How a window is replayed; None when some of its turns were deleted.

    The assistant answers at most `max_turns` user turns, from the one before the first turn that the lesson cites.
    Earlier turns are history, so that the assistant knows the whole conversation.
    """
    if not turns.keys() >= set(window.turns):
        return None
    lines = [(turn_id, message) for turn_id in window.turns if (message := chat_message(turns[turn_id])).content]
    user_places = [place for place, (_, message) in enumerate(lines) if message.role == "user"]
    cited = [number for number, place in enumerate(user_places) if lines[place][0] in window.cited]
    first = max(0, min((cited[0] if cited else 0) - 1, len(user_places) - max_turns))
    live = user_places[first : first + max_turns]
    script = [line for line in lines[live[0] : live[-1] + 1] if line[1].role != "assistant"]
    return Scenario(
        window.key,
        window.user_id,
        window.user_playbook_id,
        window.cited,
        tuple(message for _, message in lines[: live[0]][-MOST_HISTORY:]),
        tuple(message for _, message in script),
        tuple(turn_id for turn_id, _ in script),
        lesson,
    )


def build_scenarios(tx: Tx, windows: Sequence[ReplayWindow], target: Learning, max_turns: int) -> list[Scenario]:
    """The scenarios of all windows that still exist. The lesson is the content of the source playbook."""
    rows = tx.learnings.many([window.user_playbook_id for window in windows])
    turns = tx.interactions.many(sorted({turn for window in windows for turn in window.turns}))
    scenarios = []
    for window in windows:
        row = rows.get(window.user_playbook_id)
        lesson = row.content if row and row.kind is Kind.USER_PLAYBOOK and row.id != target.id else ""
        if scenario := build_scenario(window, turns, lesson, max_turns):
            scenarios.append(scenario)
    return scenarios


def chat_message(turn: Interaction) -> ChatMessage:
    """A turn as the assistant sees it; an action without text is described.

    What a tool returned belongs to the assistant, which calls its tools again in a replay.
    """
    content = turn.content.strip() or turn.user_action_description.strip()
    return ChatMessage(SIDES[role_of(turn.role)], content)
