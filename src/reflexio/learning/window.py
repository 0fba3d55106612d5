"""Which turns are learned from together, when a window is due, and which types of learnings apply to it.

A window holds new turns of one agent version and source, oldest first, filled up with earlier turns for context.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from reflexio.jobs.retry import is_pausing
from reflexio.models.config import Config
from reflexio.models.extraction import RecordedToolCall, Turn, Window, role_of
from reflexio.models.identity import is_generated_session
from reflexio.models.interaction import Interaction
from reflexio.models.learning import Kind
from reflexio.ports.storage import Backlog, Tx, Unlearned, Waiting
from reflexio.ports.work import Json

TYPES = {Kind.PROFILE: "profile_extractor_configs", Kind.USER_PLAYBOOK: "playbook_configs"}
"""The settings that hold the types of each kind of learning."""
SAME_TALK_SECONDS = 1800
"""Publishes without a session that follow each other within this time are one talk."""
SHORTEST_TURN = 400
"""Characters of a turn that no model is too small for."""


@dataclass(frozen=True)
class PlannedWindow:
    """The new turns of one window, and what applies to them."""

    turns: tuple[int, ...]
    agent_version: str
    source: str
    request_id: str


@dataclass(frozen=True)
class WindowTask:
    """One window to learn: its new turns, and where they come from.

    `by_hand` is the kind of learnings that a manual run asked for; it is empty for a window that is due.
    """

    key: str
    org_id: str
    user_id: str
    turns: tuple[int, ...]
    agent_version: str
    source: str
    request_id: str
    by_hand: str = ""

    @property
    def lane(self) -> str:
        """The windows of one user run one after the other."""
        return lane_of(self.org_id, self.user_id)

    def json(self) -> Json:
        return asdict(self)

    @classmethod
    def read(cls, data: Json) -> "WindowTask":
        return cls(**{**data, "turns": tuple(data["turns"])})


def lane_of(org_id: str, user_id: str) -> str:
    return f"{org_id}/{user_id}"


def is_due(turns: Sequence[Unlearned], waiting: Waiting, config: Config, now: int) -> bool:
    """Whether there are enough turns, a session is over, the user was quiet for a while, or an attempt failed."""
    is_urgent = any(turn.request.session_finished or turn.request.force_extraction for turn in turns)
    return bool(turns) and is_backlog_due(Backlog(len(turns), is_urgent), waiting, config, now)


def is_backlog_due(backlog: Backlog, waiting: Waiting, config: Config, now: int) -> bool:
    """The same as `is_due`, for turns that were only counted."""
    if is_pausing(waiting.retry_at, now):
        return False
    quiet = config.extraction_idle_timeout_seconds
    return (
        waiting.attempts > 0
        or backlog.turns >= config.stride_size
        or backlog.is_urgent
        or (quiet > 0 and abs(now - waiting.published_at) >= quiet)
    )


def next_window(turns: Sequence[Unlearned], config: Config, begun: Sequence[tuple[int, ...]] = ()) -> PlannedWindow:
    """The first turns that belong together, at most a window of them; or again those of a window that was begun."""
    first, ids = turns[0].request, tuple(turn.turn.interaction_id for turn in turns)
    together: list[Unlearned] = []
    again = max((len(window) for window in begun if ids[: len(window)] == window), default=0)
    for turn in turns[: again or config.window_size]:
        if (turn.request.agent_version, turn.request.source) != (first.agent_version, first.source):
            break
        together.append(turn)
    return PlannedWindow(ids[: len(together)], first.agent_version, first.source, together[-1].request.request_id)


def consecutive_windows(turns: Sequence[Unlearned], config: Config) -> list[PlannedWindow]:
    """All turns in consecutive windows."""
    windows: list[PlannedWindow] = []
    rest = list(turns)
    while rest:
        windows.append(next_window(rest, config))
        rest = rest[len(windows[-1].turns) :]
    return windows


def automatic_types(config: Config, source: str) -> Config:
    """The configuration with the types that apply automatically to published turns of one source."""
    return _select_types(config, source, lambda _, type_: not getattr(type_, "manual_trigger", False))


def rerun_types(config: Config, source: str, kind: Kind) -> Config:
    """The same for a rerun: the types of one kind, also those with a manual trigger."""
    return _select_types(config, source, lambda type_kind, _: type_kind is kind)


def manual_types(config: Config, source: str, kind: Kind) -> Config:
    """The same for a manual run: the types of one kind that allow it."""
    return _select_types(config, source, lambda type_kind, type_: type_kind is kind and type_.allow_manual_trigger)


def _select_types(config: Config, source: str, is_selected: Callable[[Kind, Any], bool]) -> Config:
    def select(kind: Kind) -> list[Any]:
        enabled = [t for t in getattr(config, TYPES[kind]) if not (s := t.request_sources_enabled) or source in s]
        return [type_ for type_ in enabled if is_selected(kind, type_)]

    return config.model_copy(update={name: select(kind) for kind, name in TYPES.items()})


def join_types(config: Config, *selections: Config) -> Config:
    """The types that apply in one of the selections, in the order of the whole configuration."""
    return config.model_copy(
        update={
            name: [type_ for type_ in getattr(config, name) if any(type_ in getattr(part, name) for part in selections)]
            for name in TYPES.values()
        }
    )


def kinds(config: Config) -> frozenset[Kind]:
    """The kinds that have at least one type."""
    return frozenset(kind for kind, name in TYPES.items() if getattr(config, name))


def turn_of(interaction: Interaction, *, is_new: bool, session: str = "") -> Turn:
    """A stored turn as learners read it."""
    return Turn(
        id=interaction.interaction_id,
        role=role_of(interaction.role),
        content=interaction.content,
        expert_content=interaction.expert_content,
        tools=tuple(RecordedToolCall(tool.tool_name, tool.tool_data, tool.status) for tool in interaction.tools_used),
        action=interaction.user_action_description if interaction.user_action != "none" else "",
        image=interaction.interacted_image_url,
        is_new=is_new,
        session=session,
        at=interaction.created_at,
    )


@dataclass(frozen=True)
class WindowTurns:
    """The turns of a window as they are stored, and the session of each request."""

    earlier: Sequence[Interaction]
    new: Sequence[Interaction]
    sessions: Mapping[str, str]


def read_turns(tx: Tx, earlier: Sequence[Interaction], new: Sequence[Interaction]) -> WindowTurns:
    requests = {turn.request_id for turn in (*earlier, *new)}
    named = {request_id: request.session_id for request_id in requests if (request := tx.requests.get(request_id))}
    return WindowTurns(earlier, new, joined_sessions((*earlier, *new), named))


def joined_sessions(turns: Sequence[Interaction], sessions: Mapping[str, str]) -> dict[str, str]:
    """The session of each request, where publishes without a session that follow each other soon are one talk."""
    joined: dict[str, str] = {}
    last: Interaction | None = None
    for turn in turns:
        session = sessions.get(turn.request_id, "")
        if turn.request_id not in joined:
            before = joined[last.request_id] if last else ""
            follows = last is not None and turn.created_at - last.created_at <= SAME_TALK_SECONDS
            is_unnamed = is_generated_session(session) and is_generated_session(before)
            joined[turn.request_id] = before if follows and is_unnamed else session
        last = turn
    return joined


def build_window(user_id: str, agent_version: str, turns: WindowTurns) -> Window:
    def read(interaction: Interaction, *, is_new: bool) -> Turn:
        return turn_of(interaction, is_new=is_new, session=turns.sessions.get(interaction.request_id, ""))

    context = [read(turn, is_new=False) for turn in turns.earlier]
    return Window(user_id, agent_version, (*context, *(read(turn, is_new=True) for turn in turns.new)))


def shortened(window: Window) -> list[Window]:
    """Shorter windows for a model that cannot read this one: without context, in halves, and at last cut.

    Empty when nothing is left to shorten.
    """
    new = tuple(turn for turn in window.turns if turn.is_new)
    if len(new) < len(window.turns):
        return [replace(window, turns=new)]
    if len(new) > 1:
        # The second half begins with the end of the first one for context: an answer needs its question.
        middle = len(new) // 2
        context = replace(new[middle - 1], is_new=False)
        return [replace(window, turns=new[:middle]), replace(window, turns=(context, *new[middle:]))]
    if new and len(new[0].content) > SHORTEST_TURN:
        return [replace(window, turns=(replace(new[0], content=_without_middle(new[0].content)),))]
    return []


def _without_middle(text: str) -> str:
    quarter = len(text) // 4
    return f"{text[:quarter]} … {text[-quarter:]}"
