"""Extraction: the instructions that describe an organisation's types, and the candidates in a model's answer.

The instructions stand before the window and rarely change, so that the provider's cache keeps them. Each entry of the
answer is taken, corrected or counted as unusable independently of the others.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from inspect import cleandoc

from reflexio.learners.llm.schemas import (
    ExtractedForget,
    ExtractedPlaybook,
    ExtractedProfile,
    ExtractedQuote,
    ExtractionAnswer,
)
from reflexio.learners.llm.transcript import compact_json
from reflexio.models.config import Config
from reflexio.models.learned import Candidate, Quote, Turn
from reflexio.models.learning import Kind

Turns = Mapping[int, Turn]


@dataclass(frozen=True)
class ExtractionInstructions:
    """The text that explains the configured types, and their names by kind."""

    text: str
    names: dict[Kind, tuple[str, ...]]

    @property
    def is_empty(self) -> bool:
        return not any(self.names.values())


def extraction_instructions(config: Config, kinds: frozenset[Kind]) -> ExtractionInstructions:
    profiles = config.profile_extractor_configs if Kind.PROFILE in kinds else []
    playbooks = config.playbook_configs if Kind.USER_PLAYBOOK in kinds else []
    names = {
        Kind.PROFILE: tuple(profile.extractor_name for profile in profiles),
        Kind.USER_PLAYBOOK: tuple(playbook.playbook_name for playbook in playbooks),
    }
    profile_types = [
        _describe_type(profile.extractor_name, profile.extraction_definition_prompt, profile.context_prompt)
        for profile in profiles
    ]
    playbook_types = [
        _describe_type(
            playbook.playbook_name,
            playbook.playbook_definition_prompt,
            playbook.context_prompt,
            playbook.metadata_definition_prompt,
        )
        for playbook in playbooks
    ]
    parts = [
        *_describe_agent(config),
        _section("Profile types", profile_types),
        _section("Playbook types", playbook_types),
    ]
    return ExtractionInstructions("\n\n".join(parts), names)


def _describe_agent(config: Config) -> Iterator[str]:
    if config.agent_context_prompt:
        yield f"# The agent\n{cleandoc(config.agent_context_prompt)}"
    if config.tool_can_use:
        tools = "\n".join(f"- {tool.tool_name}: {tool.tool_description}" for tool in config.tool_can_use)
        yield f"# Tools of the agent\n{tools}"


def _section(title: str, types: list[str]) -> str:
    return "\n\n".join([f"# {title}", *types]) if types else f"# {title}\nNone are wanted: leave the list empty."


def _describe_type(name: str, definition: str, context: str | None, metadata: str | None = None) -> str:
    text = f"## {name}\n{cleandoc(definition)}"
    if context:
        text += f"\n{cleandoc(context)}"
    asked_metadata = cleandoc(metadata or "")
    return f"{text}\nmetadata: {asked_metadata}" if asked_metadata else text


def candidates(answer: ExtractionAnswer, turns: Turns, names: Mapping[Kind, tuple[str, ...]]) -> list[Candidate | None]:
    """One candidate for each entry; None for an entry without content, or of a type that is not configured."""
    profiles, playbooks = names[Kind.PROFILE], names[Kind.USER_PLAYBOOK]
    return [
        *(_profile(entry, turns, profiles) for entry in answer.profiles),
        *(_playbook(entry, turns, playbooks) for entry in answer.playbooks),
        *(_forget(entry, turns, playbooks if entry.kind == "playbook" else profiles) for entry in answer.forget),
    ]


def _profile(entry: ExtractedProfile, turns: Turns, names: tuple[str, ...]) -> Candidate | None:
    name = _configured_name(entry.type, names)
    if not (name and entry.content):
        return None
    evidence = _quotes(entry.evidence, turns)
    return Candidate(Kind.PROFILE, name, entry.content, evidence=evidence, time_to_live=entry.time_to_live)


def _playbook(entry: ExtractedPlaybook, turns: Turns, names: tuple[str, ...]) -> Candidate | None:
    name = _configured_name(entry.type, names)
    if not (name and entry.content):
        return None
    evidence = _quotes(entry.evidence, turns)
    wording = entry.content, entry.trigger, entry.rationale
    return Candidate(Kind.USER_PLAYBOOK, name, *wording, evidence=evidence, metadata=entry.metadata)


def _forget(entry: ExtractedForget, turns: Turns, names: tuple[str, ...]) -> Candidate | None:
    if not (entry.content and names):
        return None
    kind = Kind.USER_PLAYBOOK if entry.kind == "playbook" else Kind.PROFILE
    return Candidate(kind, names[0], entry.content, evidence=_quotes(entry.evidence, turns), forget=True)


def _configured_name(name: str, configured: tuple[str, ...]) -> str:
    """The configured name that is meant. Where there is only one type, everything belongs to it."""
    if name in configured:
        return name
    if len(configured) == 1:
        return configured[0]
    letters = re.sub(r"[\W_]+", "", name).lower()
    alike = [known for known in configured if re.sub(r"[\W_]+", "", known).lower() == letters]
    return alike[0] if len(alike) == 1 else ""


def _quotes(entries: Iterable[ExtractedQuote], turns: Turns) -> tuple[Quote, ...]:
    """Quotes with the id of their turn. A quote that stands in another turn than the model says is moved there."""
    sources = ((_source(entry, turns), entry.text) for entry in entries if entry.text)
    return tuple(Quote(turn.id, text) for turn, text in sources if turn is not None)


def _source(quote: ExtractedQuote, turns: Turns) -> Turn | None:
    named = turns.get(quote.turn)
    candidates = ([named] if named else []) + list(turns.values())
    return next((turn for turn in candidates if _contains(turn, quote.text)), named)


def _contains(turn: Turn, text: str) -> bool:
    tools = (f"{call.name} {call.status} {compact_json(call.data)}" for call in turn.tools)
    whole = "\n".join([turn.content, turn.expert_content, turn.action, *tools])
    return " ".join(text.split()) in " ".join(whole.split())
