"""The critic that asks language models: one to judge, and the same or another one to find better words."""

from collections.abc import Sequence

from reflexio.learners.llm import judging, rewording
from reflexio.learners.llm.prompt import prompt
from reflexio.models.rollout import Message, Scene
from reflexio.ports.chat import Chat, Messages
from reflexio.ports.critic import ComparisonReply, RewordReply, RewordRequest


class LlmCritic:
    """Judges with one chat model and rewords with another."""

    def __init__(self, judge: Chat, writer: Chat) -> None:
        self._judge = judge
        self._writer = writer

    @property
    def name(self) -> str:
        return self._judge.name

    async def compare(
        self, scene: Scene, trigger: str, first: Sequence[Message], second: Sequence[Message]
    ) -> ComparisonReply:
        asked = Messages(prompt("judge"), judging.question(scene, trigger, first, second))
        reply = await self._judge.ask(asked, judging.Opinion)
        return ComparisonReply(judging.comparison(reply.answer), reply.spend)

    async def reword(self, rewrite: RewordRequest) -> RewordReply:
        reply = await self._writer.ask(Messages(prompt("reword"), rewording.question(rewrite)), rewording.Wording)
        return RewordReply(reply.answer.content, reply.spend)
