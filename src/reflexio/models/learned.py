"""What learning works with: a window of turns in, candidates with their evidence out, decisions about them."""

from dataclasses import dataclass, field
from typing import Any, Literal

from reflexio.models.learning import Kind, Learning
from reflexio.models.status import ProfileTimeToLive

Role = Literal["user", "agent", "system"]


@dataclass(frozen=True)
class ToolCall:
    """A tool call of a turn: its arguments and result as JSON-like data, and how it ended."""

    name: str
    data: dict[str, Any] = field(default_factory=dict)
    status: str = ""


@dataclass(frozen=True)
class Turn:
    """One turn as a learner reads it. Turns that are not new are context: already learned from."""

    id: int
    role: Role
    content: str = ""
    expert_content: str = ""
    tools: tuple[ToolCall, ...] = ()
    action: str = ""
    image: str = ""
    is_new: bool = True


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
    """Words that stand in a turn: in its content, its expert content or its tools."""

    turn_id: int
    text: str


@dataclass(frozen=True)
class Candidate:
    """Something a learner found. `forget` asks to remove what is stored about `content`.

    `name` is the playbook type or the profile extractor it is filed under.
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

    @property
    def text(self) -> str:
        return f"{self.trigger}\n{self.content}" if self.trigger else self.content


@dataclass(frozen=True)
class Spend:
    """What a step cost: model calls and tokens. The local learner costs nothing."""

    model: str = ""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "Spend") -> "Spend":
        return Spend(
            self.model or other.model,
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True)
class Extraction:
    """What was found, what it cost, and how many findings could not be used: empty, or of an unknown type."""

    candidates: tuple[Candidate, ...] = ()
    spend: Spend = field(default_factory=Spend)
    unusable: int = 0


@dataclass(frozen=True)
class Neighbour:
    """A stored learning that resembles a candidate, and how much (cosine)."""

    learning: Learning
    similarity: float


@dataclass(frozen=True)
class Neighbourhood:
    """A candidate and the stored learnings of the same user and kind next to it, nearest first."""

    candidate: Candidate
    neighbours: tuple[Neighbour, ...]


@dataclass(frozen=True)
class Decision:
    """What becomes of one candidate.

    add: store it. merge: store it with the wording given here, and retire `targets` into it. replace: store it,
    and retire `targets` as contradicted. drop: it is known already. forget: remove `targets`, store nothing.
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
class Gathered:
    """What many users taught about one matter: user playbooks, clearest first, `count` of them in all.

    `before` is the agent playbook that was made of them earlier, `known` are others that are near, nearest first.
    """

    name: str
    members: tuple[Learning, ...]
    count: int
    before: Learning | None = None
    known: tuple[Learning, ...] = ()


@dataclass(frozen=True)
class Rule:
    """An agent playbook in the making."""

    content: str
    trigger: str = ""
    rationale: str = ""


@dataclass(frozen=True)
class Generalisation:
    """The rule that a learner makes of many; None when a known one says it already."""

    rule: Rule | None = None
    spend: Spend = field(default_factory=Spend)
