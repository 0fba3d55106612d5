"""Trying a wording in a scene: both rollouts, two opinions, one judgement. Each pair is tried once in a run.

What fails is that trial's alone: an assistant that does not answer, a judge that cannot be read. Only a refused key
or bill and an empty budget end the run, because they would end every trial.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import Protocol

from pydantic import TypeAdapter

from reflexio.errors import ProviderError, ProviderRefused, ProviderUnavailable
from reflexio.learning.optimise.judge import EVEN, SAME, aborted, settle
from reflexio.learning.optimise.rollout import Rollouts
from reflexio.learning.optimise.together import together
from reflexio.learning.optimise.windows import digest
from reflexio.models.learned import Spend
from reflexio.models.rollout import Comparison, Guidance, Judgement, Rollout, Scene, Trial
from reflexio.ports.critic import Critic, RewordRequest
from reflexio.ports.work import Json, Steps

COMPARISON = TypeAdapter(Comparison)
ATTEMPTS, BACKOFF = 3, 2.0
NOT_PLAYED = Rollout()


class Purse(Protocol):
    """What models may cost."""

    async def check(self) -> None:
        """Raises Conflict when nothing is left for today."""
        ...

    def pay(self, spend: Spend) -> None:
        """What a question cost, told once for each, also of those that were answered before a crash."""
        ...


@dataclass
class Models:
    """The critic, asked in durable steps. A model that is away gets another chance or two. Counts the questions."""

    steps: Steps
    critic: Critic
    purse: Purse
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    judged: int = 0
    reflected: int = 0

    async def compare(self, name: str, scene: Scene, trigger: str, first: Rollout, second: Rollout) -> Json:
        """An opinion as JSON, or under `error` the reason that there is none."""
        seen = first.played(scene), second.played(scene)

        async def ask() -> tuple[Json, Spend]:
            made = await self.critic.compare(scene, trigger, *seen)
            return COMPARISON.dump_python(made.comparison, mode="json"), made.spend

        answer = await self._asked(name, ask)
        self.judged += 1
        return answer

    async def reword(self, name: str, rewrite: RewordRequest) -> str:
        """Other words, or none."""

        async def ask() -> tuple[Json, Spend]:
            made = await self.critic.reword(rewrite)
            return {"content": made.content}, made.spend

        answer = await self._asked(name, ask)
        self.reflected += 1
        return str(answer.get("content", ""))

    async def _asked(self, name: str, ask: Callable[[], Awaitable[tuple[Json, Spend]]]) -> Json:
        kept = await self.steps(name, lambda: self._answer(ask))
        self.purse.pay(Spend(**kept["spend"]))
        answer: Json = kept["answer"]
        return answer

    async def _answer(self, ask: Callable[[], Awaitable[tuple[Json, Spend]]]) -> Json:
        """The answer and what it cost. A failure is an answer too; only a refusal is raised."""
        spent, attempt = Spend(), 1
        while True:
            await self.purse.check()
            try:
                answer, spend = await ask()
                return {"answer": answer, "spend": asdict(spent + spend)}
            except ProviderError as error:
                spent += error.spend or Spend()
                if isinstance(error, ProviderRefused):
                    self.purse.pay(spent)
                    raise
                if attempt == ATTEMPTS or not isinstance(error, ProviderUnavailable):
                    return {"answer": {"error": str(error)}, "spend": asdict(spent)}
            await self.pause(BACKOFF**attempt)
            attempt += 1


@dataclass
class Trials:
    """All trials of a run, against the incumbent."""

    incumbent: Guidance
    rollouts: Rollouts
    models: Models
    side_by_side: int = 4
    made: dict[tuple[str, str], Trial] = field(default_factory=dict)
    _judgements: dict[str, "asyncio.Future[Judgement]"] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._room = asyncio.Semaphore(self.side_by_side)

    async def of(self, content: str, scene: Scene, *, played: bool) -> Trial:
        """The incumbent against itself is a tie; with `played`, its rollout is there to be looked at."""
        if content == self.incumbent.content and not played:
            return Trial(content, scene, NOT_PLAYED, NOT_PLAYED, EVEN)
        if (content, scene.key) not in self.made:
            async with self._room:
                self.made[content, scene.key] = await self._tried(content, scene)
        return self.made[content, scene.key]

    async def _tried(self, content: str, scene: Scene) -> Trial:
        incumbent = await self.rollouts.of(scene, self.incumbent)
        if incumbent.error:
            return _broken(content, scene, incumbent, NOT_PLAYED, f"With the incumbent: {incumbent.error}")
        if content == self.incumbent.content:
            return Trial(content, scene, incumbent, incumbent, EVEN)
        guidance = Guidance(self.incumbent.id, content, self.incumbent.trigger)
        candidate = await self.rollouts.of(scene, guidance)
        if candidate.error:
            return _broken(content, scene, incumbent, candidate, candidate.error)
        if candidate == incumbent:
            return Trial(content, scene, incumbent, candidate, SAME)
        judgement = await self._judgement(scene, incumbent, candidate)
        error = judgement.rationale if judgement.verdict == "aborted" else ""
        return Trial(content, scene, incumbent, candidate, judgement, error)

    async def _judgement(self, scene: Scene, incumbent: Rollout, candidate: Rollout) -> Judgement:
        """Wordings that make the assistant do the same are judged once."""
        which = f"{scene.key}/{digest(repr(candidate.answers))}"
        if which not in self._judgements:
            self._judgements[which] = asyncio.ensure_future(self._judged(which, scene, incumbent, candidate))
        return await self._judgements[which]

    async def _judged(self, which: str, scene: Scene, incumbent: Rollout, candidate: Rollout) -> Judgement:
        trigger = self.incumbent.trigger
        opinions = await together(
            [
                self.models.compare(f"judge/{which}/incumbent-first", scene, trigger, incumbent, candidate),
                self.models.compare(f"judge/{which}/candidate-first", scene, trigger, candidate, incumbent),
            ]
        )
        for each in opinions:
            if "error" in each:
                return aborted(f"The judge gave no opinion: {each['error']}")
        incumbent_first, candidate_first = (COMPARISON.validate_python(each) for each in opinions)
        return settle(incumbent_first, candidate_first)


def _broken(content: str, scene: Scene, incumbent: Rollout, candidate: Rollout, reason: str) -> Trial:
    return Trial(content, scene, incumbent, candidate, aborted(reason), reason)
