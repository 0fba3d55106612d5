"""What the organisation wants learned, in words. It stands before the window and rarely changes: caches keep it."""

from collections.abc import Iterator
from dataclasses import dataclass
from inspect import cleandoc

from reflexio.models.config import Config, PlaybookConfig, ProfileExtractorConfig
from reflexio.models.learning import Kind


@dataclass(frozen=True)
class Wishes:
    """The names that learnings may be filed under, by kind, and the text that explains them."""

    text: str
    names: dict[Kind, tuple[str, ...]]

    @property
    def is_empty(self) -> bool:
        return not any(self.names.values())


def wishes(config: Config, kinds: frozenset[Kind]) -> Wishes:
    profiles = config.profile_extractor_configs if Kind.PROFILE in kinds else []
    playbooks = config.playbook_configs if Kind.USER_PLAYBOOK in kinds else []
    names = {
        Kind.PROFILE: tuple(each.extractor_name for each in profiles),
        Kind.USER_PLAYBOOK: tuple(each.playbook_name for each in playbooks),
    }
    parts = [
        *_agent(config),
        *_types("Profile types", map(_profile, profiles)),
        *_types("Playbook types", map(_playbook, playbooks)),
    ]
    return Wishes("\n\n".join(parts), names)


def _agent(config: Config) -> Iterator[str]:
    if config.agent_context_prompt:
        yield f"# The agent\n{cleandoc(config.agent_context_prompt)}"
    if config.tool_can_use:
        tools = "\n".join(f"- {tool.tool_name}: {tool.tool_description}" for tool in config.tool_can_use)
        yield f"# Tools of the agent\n{tools}"


def _types(title: str, types: Iterator[str]) -> Iterator[str]:
    described = list(types)
    if described:
        yield "\n\n".join([f"# {title}", *described])
    else:
        yield f"# {title}\nNone are wanted: leave the list empty."


def _profile(wanted: ProfileExtractorConfig) -> str:
    return _described(wanted.extractor_name, wanted.extraction_definition_prompt, wanted.context_prompt)


def _playbook(wanted: PlaybookConfig) -> str:
    definition = _described(wanted.playbook_name, wanted.playbook_definition_prompt, wanted.context_prompt)
    asked = cleandoc(wanted.metadata_definition_prompt or "")
    return f"{definition}\nmetadata: {asked}" if asked else definition


def _described(name: str, definition: str, context: str | None) -> str:
    text = f"## {name}\n{cleandoc(definition)}"
    return f"{text}\n{cleandoc(context)}" if context else text
