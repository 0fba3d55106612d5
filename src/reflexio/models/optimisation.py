"""Optimisation: jobs and candidates on the wire, and the scenarios, rollouts and verdicts inside."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from reflexio.models.wire import NoticeResponse, PageResponse, RequestModel, ResponseModel, RowId, SuccessResponse

Side = Literal["user", "assistant", "system"]
Place = Literal["first", "second", "tie"]
Verdict = Literal["candidate", "incumbent", "tie", "aborted"]
Wording = Literal["candidate", "incumbent"]


@dataclass(frozen=True)
class ChatMessage:
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
class Scenario:
    """A source window to replay: the earlier turns, then the turns that the assistant answers again.

    `turns` are the numbers of the lines of the script; `lesson` is what the user taught in it.
    """

    key: str
    user_id: str
    user_playbook_id: int
    cited: tuple[int, ...]
    history: tuple[ChatMessage, ...]
    script: tuple[ChatMessage, ...]
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

    def played(self, scene: Scenario) -> tuple[ChatMessage, ...]:
        """The script with the answers inserted."""
        answers = iter(self.answers)
        played: list[ChatMessage] = []
        for line in scene.script:
            played.append(line)
            if line.role == "user" and (answer := next(answers, None)) is not None:
                played.append(ChatMessage("assistant", answer))
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
class OrderedVerdict:
    """The judge's verdict for one order of the rollouts. Higher scores favour the candidate."""

    shown_first: Wording
    verdict: Verdict
    score: float
    likert: int
    rationale: str = ""


@dataclass(frozen=True)
class Judgement:
    """The verdict on candidate and incumbent, independent of the order in which they were shown.

    `orders` has the verdicts that it was combined from; none when nobody was asked.
    """

    verdict: Verdict
    score: float
    likert: int
    rationale: str = ""
    feedback: Feedback = field(default_factory=Feedback)
    orders: tuple[OrderedVerdict, ...] = ()


@dataclass(frozen=True)
class Trial:
    """One candidate in one scenario: both rollouts and the verdict. An aborted trial has the reason."""

    content: str
    scene: Scenario
    incumbent: Rollout
    candidate: Rollout
    judgement: Judgement
    error: str = ""


TargetKind = Literal["agent_playbook", "user_playbook"]
JobStatus = Literal["pending", "running", "completed", "skipped", "failed"]
StartedBy = Literal["hand", "aggregation", "schedule"]
UNFINISHED: tuple[JobStatus, ...] = ("pending", "running")


class CallCounts(ResponseModel):
    """The number of evaluations and of model calls."""

    evaluations: int = 0
    assistant_calls: int = 0
    judge_calls: int = 0
    reflection_calls: int = 0


class OptimizationEstimate(CallCounts):
    """The highest possible cost of a run. Failed assistant calls and unreadable answers are retried."""

    train_windows: int = 0
    validation_windows: int = 0
    assistant_retries_per_call: int = 0


class JobRow(ResponseModel):
    """A stored row of an optimisation job."""

    job_id: int = 0
    created_at: int = 0


class PlaybookOptimizationJob(JobRow, CallCounts):
    """One search for better wording, and its result."""

    optimizer_kind: Literal["gepa"] = "gepa"
    target_kind: TargetKind
    target_id: int
    status: JobStatus = "pending"
    started_by: StartedBy = "hand"
    decision_reason: str = ""
    seed: int = 0
    incumbent_content: str = ""
    winner_content: str | None = None
    best_candidate_id: int | None = None
    best_score: float | None = None
    successor_target_id: int | None = None
    estimate: OptimizationEstimate = OptimizationEstimate()
    metric_calls: int = 0
    max_metric_calls: int = 0
    aborted_evaluations: int = 0
    accounted_questions: int = 0
    fingerprint: str = ""
    updated_at: int = 0
    completed_at: int | None = None

    @property
    def has_ended(self) -> bool:
        return self.status not in UNFINISHED

    def changed(self, **values: Any) -> Self:
        return self.model_copy(update=values)

    def ended(self, status: JobStatus, reason: str, now: int, **values: Any) -> Self:
        return self.changed(status=status, decision_reason=reason, completed_at=now, updated_at=now, **values)


class PlaybookOptimizationCandidate(JobRow):
    """A candidate wording. The first one of a job is the incumbent."""

    candidate_id: int = 0
    candidate_index: int = 0
    content: str
    parent_candidate_ids: list[int] = []
    aggregate_score: float | None = None
    is_winner: bool = False


class RolloutMessage(ResponseModel):
    """A message of a rollout. Deleted words of a user are missing."""

    role: Side
    content: str


class OptimizationFeedback(ResponseModel):
    """Feedback of the judge for the next wording."""

    failure_modes: list[str] = []
    regressions: list[str] = []
    winning_behaviors: list[str] = []
    missing_instructions: list[str] = []
    recommended_mutations: list[str] = []


class OptimizationVerdict(ResponseModel):
    """The judge's verdict for one order of the rollouts."""

    shown_first: Wording
    verdict: Verdict
    score: float
    likert: int
    rationale: str = ""


class PlaybookOptimizationEvaluation(JobRow):
    """A candidate and the incumbent in the same source window, and the judge's verdict."""

    evaluation_id: int = 0
    candidate_id: int = 0
    target_kind: TargetKind = "agent_playbook"
    target_id: int = 0
    user_id: str = ""
    scenario_user_playbook_id: int | None = None
    source_interaction_ids: list[int] = []
    is_validation: bool = False
    score: float = 0.0
    verdict: Verdict = "tie"
    likert: Annotated[int, Field(ge=0, le=5)] = 0
    rationale: str = ""
    feedback: OptimizationFeedback = OptimizationFeedback()
    orders: list[OptimizationVerdict] = []
    error: str | None = None
    incumbent_rollout: list[RolloutMessage] = []
    candidate_rollout: list[RolloutMessage] = []


class PlaybookOptimizationEvent(JobRow):
    """An event of the search."""

    event_id: int = 0
    event_type: str
    payload: dict[str, Any] = {}


class RunPlaybookOptimizationRequest(RequestModel):
    """Names the playbook. `dry_run` only estimates the cost."""

    agent_playbook_id: RowId | None = None
    user_playbook_id: RowId | None = None
    dry_run: bool = False
    seed: Annotated[int, Field(ge=0, lt=2**31)] | None = None

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if (self.agent_playbook_id is None) == (self.user_playbook_id is None):
            raise ValueError("give agent_playbook_id or user_playbook_id, one of them")
        return self

    @property
    def target_kind(self) -> TargetKind:
        return "agent_playbook" if self.agent_playbook_id is not None else "user_playbook"

    @property
    def target_id(self) -> int:
        return self.agent_playbook_id or self.user_playbook_id or 0


class RunPlaybookOptimizationResponse(NoticeResponse):
    """The job that began, or the reason that there is nothing to do; after a dry run only the estimate."""

    job_id: int | None = None
    status: JobStatus = "pending"
    job: PlaybookOptimizationJob | None = None
    estimate: OptimizationEstimate | None = None


class GetPlaybookOptimizationsResponse(PageResponse):
    """Jobs, newest first."""

    jobs: list[PlaybookOptimizationJob] = []


class GetPlaybookOptimizationResponse(SuccessResponse):
    """One job with all its candidates."""

    job: PlaybookOptimizationJob
    candidates: list[PlaybookOptimizationCandidate] = []
    evaluations: list[PlaybookOptimizationEvaluation] = []
    events: list[PlaybookOptimizationEvent] = []


class CancelPlaybookOptimizationRequest(RequestModel):
    """Names a job."""

    job_id: RowId


class CancelPlaybookOptimizationResponse(NoticeResponse):
    """Whether a running job was cancelled."""

    job: PlaybookOptimizationJob | None = None
