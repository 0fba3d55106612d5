"""The learner that asks a language model: one call for a window, one more where notes have neighbours, one for a
cluster. The prompts are Markdown files, read once; their hash is kept with everything learned."""

from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files

from reflexio.learners.llm.consolidation import consolidation_question, decisions, summary, summary_question
from reflexio.learners.llm.extraction import candidates, extraction_instructions
from reflexio.learners.llm.schemas import ConsolidationAnswer, ExtractionAnswer, SummaryAnswer
from reflexio.learners.llm.transcript import transcript
from reflexio.models.config import Config
from reflexio.models.extraction import (
    ClusterToSummarise,
    Consolidation,
    Extraction,
    Neighbourhood,
    Spend,
    Summary,
    Window,
)
from reflexio.models.learning import Kind
from reflexio.ports.chat import TRIAL, Chat, Messages, TrialAnswer

LEARNING_PROMPTS = ("extract", "consolidate", "summarise")
OTHER_PROMPTS = ("judge", "reword")
FINGERPRINT_LENGTH = 12


@cache
def prompt(name: str) -> str:
    """The text of a prompt without its header."""
    _, _, text = _read_prompt(name).removeprefix("---\n").partition("\n---\n")
    return text.strip()


@cache
def fingerprint() -> str:
    """Changes with every change of a prompt that learnings come from."""
    return sha256("\0".join(map(_read_prompt, LEARNING_PROMPTS)).encode()).hexdigest()[:FINGERPRINT_LENGTH]


def _read_prompt(name: str) -> str:
    return (files(__package__) / "prompts" / f"{name}.md").read_text("utf-8")


class LlmLearner:
    """Reads windows with a chat model.

    What never changes stands first in every prompt, then what the organisation configured, then the window: providers
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

    async def check(self) -> Spend:
        return (await self._chat.ask(TRIAL, TrialAnswer)).spend

    async def extract(self, window: Window, config: Config, kinds: frozenset[Kind]) -> Extraction:
        instructions = extraction_instructions(config, kinds)
        if instructions.is_empty or not any(turn.is_new for turn in window.turns):
            return Extraction()
        read = transcript(window)
        messages = Messages(f"{prompt('extract')}\n\n{instructions.text}", read.text, read.images)
        reply = await self._chat.ask(messages, ExtractionAnswer)
        entries = candidates(reply.answer, read.turns, instructions.names)
        usable = tuple(candidate for candidate in entries if candidate is not None)
        return Extraction(usable, reply.spend, len(entries) - len(usable))

    async def consolidate(self, questions: Sequence[Neighbourhood], config: Config) -> Consolidation:
        if not questions:
            return Consolidation()
        question = consolidation_question(questions)
        reply = await self._chat.ask(Messages(prompt("consolidate"), question.text), ConsolidationAnswer)
        return Consolidation(decisions(reply.answer, questions, question.near), reply.spend)

    async def summarise(self, gathered: ClusterToSummarise, config: Config) -> Summary:
        own_type = [playbook for playbook in config.playbook_configs if playbook.playbook_name == gathered.name]
        instructions = prompt("summarise")
        if own_type:
            own_config = config.model_copy(update={"playbook_configs": own_type})
            types = extraction_instructions(own_config, frozenset({Kind.USER_PLAYBOOK}))
            instructions = f"{instructions}\n\n{types.text}"
        reply = await self._chat.ask(Messages(instructions, summary_question(gathered)), SummaryAnswer)
        return Summary(summary(reply.answer), reply.spend)
