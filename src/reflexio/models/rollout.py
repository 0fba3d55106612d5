"""What a search for better wording works with: a scene to replay, what the assistant did in it, and who did better."""

from dataclasses import dataclass, field
from typing import Literal

Side = Literal["user", "assistant", "system"]
Place = Literal["first", "second", "tie"]
Verdict = Literal["candidate", "incumbent", "tie", "aborted"]


@dataclass(frozen=True)
class Message:
    """One line of a conversation as an assistant takes it."""

    role: Side
    content: str


@dataclass(frozen=True)
class Guidance:
    """The one playbook that an assistant is given for a rollout. Of two rollouts only its content differs."""

    id: int
    content: str
    trigger: str = ""


@dataclass(frozen=True)
class Scene:
    """A source window to play again: what was said before, then the turns that the assistant answers anew.

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
    """The answers of the assistant, one for each user turn of the script; with an error it broke off."""

    answers: tuple[str, ...] = ()
    error: str = ""

    def played(self, scene: Scene) -> tuple[Message, ...]:
        """The script with the answers in their places."""
        answers = iter(self.answers)
        played: list[Message] = []
        for line in scene.script:
            played.append(line)
            if line.role == "user" and (answer := next(answers, None)) is not None:
                played.append(Message("assistant", answer))
        return tuple(played)


@dataclass(frozen=True)
class Feedback:
    """What a rewriter can act on."""

    failure_modes: tuple[str, ...] = ()
    regressions: tuple[str, ...] = ()
    winning_behaviors: tuple[str, ...] = ()
    missing_instructions: tuple[str, ...] = ()
    recommended_mutations: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """What a judge says of two replays, not knowing which is which. The score and the mark rise with the second."""

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
    """The candidate against the incumbent, whatever the order they were shown in."""

    verdict: Verdict
    score: float
    likert: int
    rationale: str = ""
    feedback: Feedback = field(default_factory=Feedback)


@dataclass(frozen=True)
class Trial:
    """One wording in one scene: both rollouts and the judgement. An aborted one says why."""

    content: str
    scene: Scene
    incumbent: Rollout
    candidate: Rollout
    judgement: Judgement
    error: str = ""
