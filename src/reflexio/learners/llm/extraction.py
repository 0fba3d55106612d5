"""Extraction: the instructions that describe an organisation's types, and the candidates in a model's answer.

The instructions stand before the window and rarely change, so that the provider's cache keeps them. Each entry of the
answer is taken, corrected or counted as unusable independently of the others.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any

from reflexio.learners.llm.schemas import (
    ExtractedForget,
    ExtractedPlaybook,
    ExtractedProfile,
    ExtractedQuote,
    ExtractionAnswer,
)
from reflexio.models.config import Config
from reflexio.models.extraction import ExtractedLearning, Quote, Turn
from reflexio.models.learning import Kind
from reflexio.models.wording import without_hidden

Turns = Mapping[int, Turn]
Entry = ExtractedProfile | ExtractedPlaybook | ExtractedForget


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
        _describe_type(playbook.playbook_name, playbook.playbook_definition_prompt, playbook.context_prompt)
        + _describe_metadata(playbook.metadata_definition_prompt)
        for playbook in playbooks
    ]
    sections = [_section("Profile types", profile_types), _section("Playbook types", playbook_types)]
    parts = [*_describe_agent(config), *sections]
    return ExtractionInstructions(without_hidden("\n\n".join(parts)), names)


def _describe_agent(config: Config) -> Iterator[str]:
    if config.agent_context_prompt:
        yield f"# The agent\n{cleandoc(config.agent_context_prompt)}"
    if config.tool_can_use:
        tools = "\n".join(f"- {tool.tool_name}: {tool.tool_description}" for tool in config.tool_can_use)
        yield f"# Tools of the agent\n{tools}"


def _section(title: str, types: list[str]) -> str:
    return "\n\n".join([f"# {title}", *types]) if types else f"# {title}\nNone are wanted: leave the list empty."


def _describe_type(name: str, definition: str, context: str | None) -> str:
    text = f"## {name}\n{cleandoc(definition)}"
    return f"{text}\n{cleandoc(context)}" if context else text


def _describe_metadata(definition: str | None) -> str:
    text = cleandoc(definition or "")
    return f"\nmetadata: {text}" if text else ""


def candidates(
    answer: ExtractionAnswer, turns: Turns, names: Mapping[Kind, tuple[str, ...]]
) -> list[ExtractedLearning | None]:
    """One candidate for each entry; None for an entry without content, or of a type that is not configured."""
    read: list[ExtractedLearning | None] = []
    for profile in answer.profiles:
        name = _configured_name(profile.type, names[Kind.PROFILE])
        read.append(
            _candidate(Kind.PROFILE, name, profile, turns, time_to_live=profile.time_to_live, scope=profile.scope)
        )
    for playbook in answer.playbooks:
        name = _configured_name(playbook.type, names[Kind.USER_PLAYBOOK])
        wording = {"trigger": playbook.trigger, "rationale": playbook.rationale, "metadata": playbook.metadata}
        read.append(_candidate(Kind.USER_PLAYBOOK, name, playbook, turns, scope=playbook.scope, **wording))
    for request in answer.forget:
        kind = Kind.USER_PLAYBOOK if request.kind == "playbook" else Kind.PROFILE
        read.append(_candidate(kind, next(iter(names[kind]), ""), request, turns, forget=True))
    return read


def _candidate(kind: Kind, name: str, entry: Entry, turns: Turns, **details: Any) -> ExtractedLearning | None:
    if not (name and entry.content):
        return None
    return ExtractedLearning(kind, name, entry.content, evidence=_quotes(entry.evidence, turns), **details)


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
    """Quotes with the id of the turn that the model names; 0 for none. Whether they stand there is not decided here."""
    numbered = ((turns.get(entry.turn), entry.text) for entry in entries if entry.text)
    return tuple(Quote(turn.id if turn else 0, text) for turn, text in numbered)
