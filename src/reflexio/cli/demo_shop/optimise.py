"""Plays the assistant and the judge of the optimiser, by rules that are shown as such: nothing here is a model.

The assistant follows the sentences that it finds in a playbook, and the judge prefers the answer that follows more.
"""

from collections.abc import Sequence

from reflexio.cli.demo_shop.conversations import ADDITIONS
from reflexio.models.config import Config, PlaybookOptimizerConfig
from reflexio.models.extraction import Spend
from reflexio.models.optimisation import ChatMessage, Comparison, Guidance, Place, Scenario
from reflexio.optimisation.service import OptimisationBackends
from reflexio.ports.assistant import Assistant
from reflexio.ports.chat import estimate
from reflexio.ports.learner import ComparisonReply, Critic, RewordReply, RewordRequest

NAME = "demo:scripted"
POINTS, LIKERT = {0: 0.5, 1: 0.8, 2: 0.9, 3: 0.95}, {0: 3, 1: 4, 2: 5, 3: 5}


class DemoAssistant:
    """Answers with the rule that it follows, and with a sentence for each addition in the rule."""

    async def answer(self, messages: Sequence[ChatMessage], guidance: Guidance) -> str:
        followed = [addition["answer"] for addition in ADDITIONS if addition["rule"] in guidance.content]
        rule = guidance.content
        for addition in ADDITIONS:
            rule = rule.replace(addition["rule"], "").strip()
        return " ".join([f"(Demo assistant) I keep to this: {rule}", *followed])

    async def aclose(self) -> None:
        """Holds nothing open."""


class DemoCritic:
    """Counts the additions that an answer follows."""

    @property
    def name(self) -> str:
        return NAME

    async def compare(
        self, scene: Scenario, trigger: str, first: Sequence[ChatMessage], second: Sequence[ChatMessage]
    ) -> ComparisonReply:
        counts = _followed(first), _followed(second)
        lead = counts[1] - counts[0]
        verdict: Place = "second" if lead > 0 else "first" if lead < 0 else "tie"
        points, likert = POINTS[min(abs(lead), 3)], LIKERT[min(abs(lead), 3)]
        missing = [addition["rule"] for addition in ADDITIONS[max(counts) :]]
        comparison = Comparison(
            verdict,
            points if lead >= 0 else 1 - points,
            likert if lead >= 0 else 6 - likert,
            f"The first answer gives {counts[0]} concrete detail(s), the second {counts[1]}.",
            better_in_first=("It is more concrete.",) if lead < 0 else (),
            better_in_second=("It is more concrete.",) if lead > 0 else (),
            missing_instructions=tuple(missing[:1]),
        )
        return ComparisonReply(comparison, _spend([*first, *second]))

    async def reword(self, request: RewordRequest) -> RewordReply:
        content = request.guidance.content
        tried = {trial.content for trial in (*request.trials, *request.tried)}
        proposals = (f"{content} {addition['rule']}" for addition in ADDITIONS if addition["rule"] not in content)
        new = next((proposal for proposal in proposals if proposal not in tried), "")
        return RewordReply(new, _spend([ChatMessage("user", content + new)]))


def _followed(messages: Sequence[ChatMessage]) -> int:
    return sum(any(addition["answer"] in message.content for message in messages) for addition in ADDITIONS)


def _spend(messages: Sequence[ChatMessage]) -> Spend:
    sent = sum(estimate(message.content) for message in messages)
    return Spend(NAME, calls=1, input_tokens=420 + sent, output_tokens=60, estimated_calls=1)


def demo_backends() -> OptimisationBackends:
    async def assistant(_: PlaybookOptimizerConfig) -> Assistant:
        return DemoAssistant()

    def critic(_: Config) -> Critic | None:
        return DemoCritic()

    return OptimisationBackends(assistant, critic)
