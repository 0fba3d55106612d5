"""Which turns are learned from together, and when.

A window holds new turns of one agent version and source, oldest first, filled up with earlier ones for context.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from reflexio.models.config import Config
from reflexio.models.interaction import Interaction
from reflexio.models.learned import Role, ToolCall, Turn, Window
from reflexio.models.learning import Kind
from reflexio.ports.storage import Backlog, Unlearned, Waiting

LONGEST_BACKOFF = 300

SIDES: dict[str, Role] = {"assistant": "agent", "agent": "agent", "ai": "agent", "bot": "agent", "system": "system"}


@dataclass(frozen=True)
class Plan:
    """The new turns of one window, and what applies to them."""

    turns: tuple[int, ...]
    agent_version: str
    source: str
    request_id: str


def is_due(turns: Sequence[Unlearned], waiting: Waiting, config: Config, now: int) -> bool:
    """Enough has gathered, a session is over, it has been quiet for a while, or it was due before and failed.

    A time that lies far ahead was told by a clock that has been set back since, and holds nobody up.
    """
    urgent = any(each.request.session_finished or each.request.force_extraction for each in turns)
    return bool(turns) and is_ripe(Backlog(len(turns), urgent), waiting, config, now)


def is_ripe(backlog: Backlog, waiting: Waiting, config: Config, now: int) -> bool:
    """The same, of turns that were only counted."""
    if 0 < waiting.retry_at - now <= LONGEST_BACKOFF:
        return False
    quiet = config.extraction_idle_timeout_seconds
    return (
        waiting.attempts > 0
        or backlog.turns >= config.stride_size
        or backlog.is_urgent
        or (quiet > 0 and abs(now - waiting.published_at) >= quiet)
    )


def plan(turns: Sequence[Unlearned], config: Config) -> Plan:
    """The first turns that belong together, at most a window of them."""
    first = turns[0].request
    together: list[Unlearned] = []
    for each in turns[: config.window_size]:
        if (each.request.agent_version, each.request.source) != (first.agent_version, first.source):
            break
        together.append(each)
    ids = tuple(each.turn.interaction_id for each in together)
    return Plan(ids, first.agent_version, first.source, together[-1].request.request_id)


def plans(turns: Sequence[Unlearned], config: Config) -> list[Plan]:
    """All turns in consecutive windows."""
    made: list[Plan] = []
    rest = list(turns)
    while rest:
        made.append(plan(rest, config))
        rest = rest[len(made[-1].turns) :]
    return made


def applicable(config: Config, source: str) -> Config:
    """The configuration as it applies to turns of one source that were published, not asked for by hand."""
    return config.model_copy(
        update={
            "profile_extractor_configs": [
                each
                for each in config.profile_extractor_configs
                if _takes(each.request_sources_enabled, source) and not each.manual_trigger
            ],
            "playbook_configs": [
                each for each in config.playbook_configs if _takes(each.request_sources_enabled, source)
            ],
        }
    )


def asked_for(config: Config, source: str, kind: Kind) -> Config:
    """The same for turns that are learned from once more: of one kind only, and whatever waits to be asked."""
    return config.model_copy(
        update={
            "profile_extractor_configs": [
                each
                for each in config.profile_extractor_configs
                if kind is Kind.PROFILE and _takes(each.request_sources_enabled, source)
            ],
            "playbook_configs": [
                each
                for each in config.playbook_configs
                if kind is Kind.USER_PLAYBOOK and _takes(each.request_sources_enabled, source)
            ],
        }
    )


def by_hand(config: Config, source: str, kind: Kind) -> Config:
    """The same for a window that somebody asked for by hand: what allows it."""
    asked = asked_for(config, source, kind)
    return asked.model_copy(
        update={
            "profile_extractor_configs": [
                each for each in asked.profile_extractor_configs if each.allow_manual_trigger
            ],
            "playbook_configs": [each for each in asked.playbook_configs if each.allow_manual_trigger],
        }
    )


def joined(config: Config, *some: Config) -> Config:
    """What applies in one of them, in the order of the whole."""
    return config.model_copy(
        update={
            name: [each for each in getattr(config, name) if any(each in getattr(part, name) for part in some)]
            for name in ("profile_extractor_configs", "playbook_configs")
        }
    )


def _takes(sources: list[str] | None, source: str) -> bool:
    return not sources or source in sources


def kinds(config: Config) -> frozenset[Kind]:
    wanted = {Kind.PROFILE: config.profile_extractor_configs, Kind.USER_PLAYBOOK: config.playbook_configs}
    return frozenset(kind for kind, types in wanted.items() if types)


def read(turn: Interaction, *, is_new: bool) -> Turn:
    done = turn.user_action_description if turn.user_action != "none" else ""
    return Turn(
        id=turn.interaction_id,
        role=SIDES.get(turn.role.strip().lower(), "user"),
        content=turn.content,
        expert_content=turn.expert_content,
        tools=tuple(ToolCall(each.tool_name, each.tool_data, each.status) for each in turn.tools_used),
        action=done,
        image=turn.interacted_image_url,
        is_new=is_new,
    )


def window(user_id: str, agent_version: str, earlier: Sequence[Interaction], new: Sequence[Interaction]) -> Window:
    context = [read(each, is_new=False) for each in earlier]
    return Window(user_id, agent_version, (*context, *(read(each, is_new=True) for each in new)))
