"""The learner that asks a language model: one call a window, one more where notes have neighbours, one a cluster."""

from collections.abc import Sequence

from reflexio.learners.llm import generalising
from reflexio.learners.llm.finding import candidates
from reflexio.learners.llm.prompt import fingerprint, prompt
from reflexio.learners.llm.settling import decisions, question
from reflexio.learners.llm.shapes import Findings, Generalised, Verdicts
from reflexio.learners.llm.transcript import transcript
from reflexio.learners.llm.wishes import wishes
from reflexio.models.config import Config
from reflexio.models.learned import Consolidation, Extraction, Gathered, Generalisation, Neighbourhood, Window
from reflexio.models.learning import Kind
from reflexio.ports.chat import Chat, Messages


class LlmLearner:
    """Reads windows with a chat model.

    What never changes stands first in every prompt, then what the organisation wants, then the window: providers
    charge a tenth for what they have read before.
    """

    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    @property
    def name(self) -> str:
        return self._chat.name

    @property
    def fingerprint(self) -> str:
        return fingerprint()

    async def extract(self, window: Window, config: Config, kinds: frozenset[Kind]) -> Extraction:
        wanted = wishes(config, kinds)
        if wanted.is_empty or not any(turn.is_new for turn in window.turns):
            return Extraction()
        read = transcript(window)
        messages = Messages(f"{prompt('extract')}\n\n{wanted.text}", read.text, read.images)
        reply = await self._chat.ask(messages, Findings)
        found, unusable = candidates(reply.answer, read.turns, wanted.names)
        return Extraction(found, reply.spend, unusable)

    async def consolidate(self, questions: Sequence[Neighbourhood], config: Config) -> Consolidation:
        if not questions:
            return Consolidation()
        asked = question(questions)
        reply = await self._chat.ask(Messages(prompt("consolidate"), asked.text), Verdicts)
        return Consolidation(decisions(reply.answer, questions, asked.near), reply.spend)

    async def generalise(self, gathered: Gathered, config: Config) -> Generalisation:
        only = [each for each in config.playbook_configs if each.playbook_name == gathered.name]
        wanted = wishes(config.model_copy(update={"playbook_configs": only}), frozenset({Kind.USER_PLAYBOOK}))
        instructions = f"{prompt('generalise')}\n\n{wanted.text}" if only else prompt("generalise")
        reply = await self._chat.ask(Messages(instructions, generalising.question(gathered)), Generalised)
        return Generalisation(generalising.rule(reply.answer), reply.spend)
