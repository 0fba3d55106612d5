"""Values of an optimisation: a scenario to replay, the assistant's rollouts, and the verdict."""

from dataclasses import dataclass, field
from typing import Literal

Side = Literal["user", "assistant", "system"]
Place = Literal["first", "second", "tie"]
Verdict = Literal["candidate", "incumbent", "tie", "aborted"]


@dataclass(frozen=True)
class Message:
    """One message of a conversation as an assistant gets it."""

    role: Side
    content: str


@dataclass(frozen=True)
class Guidance:
    """The playbook that an assistant gets for a rollout. Two rollouts differ only in its content."""

    id: int
    content: str
    trigger: str = ""


@dataclass(frozen=True)
class Scene:
    """A source window to replay: the earlier turns, then the turns that the assistant answers again.

    `turns` are the numbers of the lines of the script; `lesson` is what the user taught in it.
    """

    key: str
    user_id: str
    user_playbook_id: int
    cited: tuple[int, ...]
    history: tuple[Message, ...]
    script: tuple[Message, ...]
    turns: tuple[int, ...] = ()
    lesson: str = ""

    @property
    def questions(self) -> int:
        """How often the assistant is called."""
        return sum(each.role == "user" for each in self.script)


@dataclass(frozen=True)
class Rollout:
    """The assistant's answers, one for each user turn of the script. With an error, the rollout stopped there."""

    answers: tuple[str, ...] = ()
    error: str = ""

    def played(self, scene: Scene) -> tuple[Message, ...]:
        """The script with the answers inserted."""
        answers = iter(self.answers)
        played: list[Message] = []
        for line in scene.script:
            played.append(line)
            if line.role == "user" and (answer := next(answers, None)) is not None:
                played.append(Message("assistant", answer))
        return tuple(played)


@dataclass(frozen=True)
class Feedback:
    """Feedback for the next wording."""

    failure_modes: tuple[str, ...] = ()
    regressions: tuple[str, ...] = ()
    winning_behaviors: tuple[str, ...] = ()
    missing_instructions: tuple[str, ...] = ()
    recommended_mutations: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """A judge's answer about two anonymous replays. Higher scores favour the second."""

    verdict: Place
    score: float
    likert: int
    rationale: str = ""
    better_in_first: tuple[str, ...] = ()
    better_in_second: tuple[str, ...] = ()
    worse_in_first: tuple[str, ...] = ()
    worse_in_second: tuple[str, ...] = ()
    wrong_in_both: tuple[str, ...] = ()
    missing_instructions: tuple[str, ...] = ()
    recommended_mutations: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judgement:
    """The verdict on candidate and incumbent, independent of the order in which they were shown."""

    verdict: Verdict
    score: float
    likert: int
    rationale: str = ""
    feedback: Feedback = field(default_factory=Feedback)


@dataclass(frozen=True)
class Trial:
    """One candidate in one scenario: both rollouts and the verdict. An aborted trial has the reason."""

    content: str
    scene: Scene
    incumbent: Rollout
    candidate: Rollout
    judgement: Judgement
    error: str = ""
