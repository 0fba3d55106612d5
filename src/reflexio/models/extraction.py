"""Values of learning: windows of turns, extracted learnings with evidence, and decisions about them."""

from dataclasses import dataclass, field
from typing import Any, Literal

from reflexio.models.learning import Kind, Learning, ProfileTimeToLive, Scope
from reflexio.models.wire import NEVER_EXPIRES

Role = Literal["user", "agent", "tool", "system", "developer"]
_ROLES: dict[str, Role] = {
    **dict.fromkeys(("agent", "assistant", "ai", "bot", "chatbot", "model"), "agent"),
    **dict.fromkeys(("tool", "function", "tool_result", "function_call_output", "ipython"), "tool"),
    "system": "system",
    "developer": "developer",
}
EVERYTHING = "everything about the user"
"""The content of a request to forget everything."""


def role_of(written: str) -> Role:
    """The role that a publisher writes as free text. Whoever is unknown is on the user's side.

    >>> [role_of(written) for written in ("Assistant", " function ", "Ann")]
    ['agent', 'tool', 'user']
    """
    return _ROLES.get(written.strip().lower(), "user")


@dataclass(frozen=True)
class RecordedToolCall:
    """A tool call of a turn: its arguments and result as JSON-like data, and how it ended."""

    name: str
    data: dict[str, Any] = field(default_factory=dict)
    status: str = ""


@dataclass(frozen=True)
class Turn:
    """One turn as a learner reads it. Turns that are not new are context; those of another session are another talk.
    `at` is when it was said; 0 is unknown.
    """

    id: int
    role: Role
    content: str = ""
    expert_content: str = ""
    tools: tuple[RecordedToolCall, ...] = ()
    action: str = ""
    image: str = ""
    is_new: bool = True
    session: str = ""
    at: int = 0


@dataclass(frozen=True)
class Window:
    """Turns of one user, oldest first."""

    user_id: str
    agent_version: str
    turns: tuple[Turn, ...]

    @property
    def has_expert(self) -> bool:
        return any(turn.expert_content for turn in self.turns if turn.is_new)


@dataclass(frozen=True)
class Quote:
    """Words quoted from a turn: from its content, expert content or tools."""

    turn_id: int
    text: str


@dataclass(frozen=True)
class ExtractedLearning:
    """A learning that a learner extracted. `forget` requests to remove what is stored about `content`.

    `name` is its playbook type or profile extractor. `scope` is None when the learner leaves it undecided.
    `only_replaces`: it is stored only where it replaces something, as "emojis are fine now" does. `said_at` is the time
    of the newest turn that it rests on; 0 is unknown.
    """

    kind: Kind
    name: str
    content: str
    trigger: str = ""
    rationale: str = ""
    evidence: tuple[Quote, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    time_to_live: ProfileTimeToLive = ProfileTimeToLive.INFINITY
    forget: bool = False
    scope: Scope | None = None
    only_replaces: bool = False
    said_at: int = 0

    def expires_at(self, now: int) -> int:
        """When it stops to hold, counted from when it was said; NEVER_EXPIRES for what lasts."""
        seconds = self.time_to_live.seconds if self.kind is Kind.PROFILE and not self.forget else 0
        return min(self.said_at or now, now) + seconds if seconds else NEVER_EXPIRES

    @property
    def text(self) -> str:
        return f"{self.trigger}\n{self.content}" if self.trigger else self.content


@dataclass(frozen=True)
class Spend:
    """Model calls and tokens of a step. The local learner costs nothing.

    `estimated_calls` is how many of the calls have estimated tokens, because the provider did not count them.
    """

    model: str = ""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    estimated_calls: int = 0

    def __add__(self, other: "Spend") -> "Spend":
        return Spend(
            self.model or other.model,
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.estimated_calls + other.estimated_calls,
        )


@dataclass(frozen=True)
class Extraction:
    """The extracted learnings, the spend, how many entries were unusable (empty, or of an unknown type), and the turns
    whose language the learner does not understand."""

    candidates: tuple[ExtractedLearning, ...] = ()
    spend: Spend = field(default_factory=Spend)
    unusable: int = 0
    unread: tuple[int, ...] = ()


@dataclass(frozen=True)
class Neighbour:
    """A stored learning near an extracted one, and their cosine."""

    learning: Learning
    similarity: float


@dataclass(frozen=True)
class Neighbourhood:
    """An extracted learning and the stored ones of the same user and kind near it, nearest first."""

    candidate: ExtractedLearning
    neighbours: tuple[Neighbour, ...]


@dataclass(frozen=True)
class Decision:
    """The decision about one extracted learning.

    add: store it. merge: store it with this wording, and retire `targets` into it. replace: store it, and retire
    `targets` as contradicted. drop: it is known already. forget: remove `targets`, store nothing.
    """

    action: Literal["add", "merge", "replace", "drop", "forget"]
    targets: tuple[int, ...] = ()
    content: str = ""
    trigger: str = ""
    rationale: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Consolidation:
    """One decision for each neighbourhood, in the same order."""

    decisions: tuple[Decision, ...] = ()
    spend: Spend = field(default_factory=Spend)


@dataclass(frozen=True)
class ClusterToSummarise:
    """One cluster to summarise: its user playbooks, most central first, `count` of them in all.

    `before` is the agent playbook of this cluster so far, `known` are other near ones, nearest first.
    """

    name: str
    members: tuple[Learning, ...]
    count: int
    before: Learning | None = None
    known: tuple[Learning, ...] = ()


@dataclass(frozen=True)
class PlaybookText:
    """The text of a new agent playbook."""

    content: str
    trigger: str = ""
    rationale: str = ""


@dataclass(frozen=True)
class Summary:
    """The summary of a cluster; None when a known agent playbook says it already."""

    rule: PlaybookText | None = None
    spend: Spend = field(default_factory=Spend)
