"""The critic that asks language models: one compares two replays, the same or another one rewords a playbook."""

from collections.abc import Iterator, Sequence

from reflexio.learners.llm.delimiters import Block, cut, delimit
from reflexio.learners.llm.learner import prompt
from reflexio.learners.llm.schemas import LONGEST_WORDING, Opinion, RewordedPlaybook
from reflexio.models.optimisation import ChatMessage, Comparison, Scenario, Trial
from reflexio.ports.chat import Chat, Messages
from reflexio.ports.learner import ComparisonReply, RewordReply, RewordRequest

MOST_HISTORY = 20
MOST_EARLIER_WORDINGS = 6
FEEDBACK_TITLES = {
    "failure_modes": "what went wrong",
    "regressions": "what became worse",
    "winning_behaviors": "what became better",
    "missing_instructions": "missing instructions",
    "recommended_mutations": "recommended changes",
}


class LlmCritic:
    """Judges with one chat model and rewords with another."""

    def __init__(self, judge: Chat, writer: Chat) -> None:
        self._judge = judge
        self._writer = writer

    @property
    def name(self) -> str:
        return self._judge.name

    async def compare(
        self, scene: Scenario, trigger: str, first: Sequence[ChatMessage], second: Sequence[ChatMessage]
    ) -> ComparisonReply:
        messages = Messages(prompt("judge"), _comparison_question(scene, trigger, first, second))
        reply = await self._judge.ask(messages, Opinion)
        opinion = reply.answer
        points = {name: tuple(value) for name, value in opinion.model_dump().items() if isinstance(value, list)}
        comparison = Comparison(opinion.better, opinion.score, opinion.likert, opinion.rationale, **points)
        return ComparisonReply(comparison, reply.spend)

    async def reword(self, request: RewordRequest) -> RewordReply:
        reply = await self._writer.ask(Messages(prompt("reword"), _rewording_question(request)), RewordedPlaybook)
        return RewordReply(reply.answer.content, reply.spend)


def _comparison_question(
    scene: Scenario, trigger: str, first: Sequence[ChatMessage], second: Sequence[ChatMessage]
) -> str:
    return delimit(
        [
            *([Block("the situation", cut(trigger))] if trigger else []),
            *([Block("what the user taught", cut(scene.lesson))] if scene.lesson else []),
            *_conversation("before", scene.history[-MOST_HISTORY:]),
            *_conversation("first replay", first),
            *_conversation("second replay", second),
        ]
    )


def _rewording_question(request: RewordRequest) -> str:
    guidance = request.guidance
    blocks = [Block("the playbook applies when", cut(guidance.trigger))] if guidance.trigger else []
    blocks.append(Block("the wording in force", cut(guidance.content, LONGEST_WORDING)))
    for number, trial in enumerate(request.trials, start=1):
        blocks += _replay(f"replay {number}", trial)
    for trial in request.tried[-MOST_EARLIER_WORDINGS:]:
        blocks += [Block("tried before", cut(trial.content, LONGEST_WORDING)), *_judgement("tried before", trial)]
    return delimit(blocks)


def _conversation(title: str, messages: Sequence[ChatMessage]) -> Iterator[Block]:
    for number, message in enumerate(messages, start=1):
        yield Block(f"{title}, line {number}, {message.role}", cut(message.content))


def _replay(title: str, trial: Trial) -> Iterator[Block]:
    if trial.scene.lesson:
        yield Block(f"{title}, what the user taught", cut(trial.scene.lesson))
    if trial.error:
        yield Block(f"{title} failed", cut(trial.error))
        return
    yield from _conversation(title, trial.candidate.played(trial.scene))
    yield from _judgement(title, trial)


def _judgement(title: str, trial: Trial) -> Iterator[Block]:
    judgement = trial.judgement
    if judgement.rationale:
        yield Block(f"{title}, the judge, score {judgement.score:.2f}", cut(judgement.rationale))
    for name, heading in FEEDBACK_TITLES.items():
        if points := getattr(judgement.feedback, name):
            yield Block(f"{title}, {heading}", "\n".join(map(cut, points)))
