"""The configuration of an organisation: what is learned, and how. One stored document with defaults for every field.

Values are read from models, dicts and the names of earlier releases alike (see `legacy`); attributes can be
assigned, and what is assigned is validated at once.
"""

import warnings
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    StringConstraints,
    WrapSerializer,
    model_validator,
)

from reflexio.models import legacy
from reflexio.models.access import KeyScope
from reflexio.models.addresses import check_url
from reflexio.models.redaction import Redaction
from reflexio.models.wire import Name, NonEmpty, Source

MASK = "**********"
DEFAULT_PLAYBOOK = "playbook"

Flag = Annotated[bool, Field(strict=True)]
Whole = Annotated[int, Field(strict=True)]
Number = Annotated[float, Field(strict=True)]
Share = Annotated[Number, Field(ge=0.0, le=1.0)]
Positive = Annotated[Whole, Field(gt=0, le=1_000_000_000)]
Prompt = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100_000)]
OutgoingUrl = Annotated[str, AfterValidator(check_url)]
"""An address that the server will call. Where a name leads is checked when it is called."""
Sources = Annotated[list[Source] | None, Field(max_length=1000)]


def _hidden(value: Any, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> Any:
    if isinstance(value, SecretStr):
        return value.get_secret_value() if (info.context or {}).get("reveal") else MASK
    return write(value)


Secret = Annotated[SecretStr, WrapSerializer(_hidden)]
"""A secret text: it is masked whenever it is serialised, unless the context says `reveal`."""


class Setting(BaseModel):
    """A part of the configuration. Unknown names are errors; names of earlier releases are translated."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True, defer_build=True)
    renamed: ClassVar[dict[str, str]] = {}
    retired: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _translate(cls, raw: Any) -> Any:
        return legacy.translate(raw, renamed=cls.renamed, retired=cls.retired) if isinstance(raw, dict) else raw

    if not TYPE_CHECKING:  # a type checker finds names that are misspelt, and knows today's names only

        def __getattr__(self, name: str) -> Any:
            """Old names read today's value; retired names have none."""
            if name in type(self).renamed:
                return getattr(self, type(self).renamed[name])
            if name in type(self).retired:
                return None
            return super().__getattr__(name)

        def __setattr__(self, name: str, value: Any) -> None:
            if name not in type(self).retired:
                super().__setattr__(type(self).renamed.get(name, name), value)
            elif value:
                warnings.warn(f"{name} is not used by this server", stacklevel=2)


S = TypeVar("S", bound=Setting)


class ExtractionPreset(StrEnum):
    """Window and stride for a kind of conversation."""

    QUICK_CHAT = "quick_chat"
    STANDARD = "standard"
    LONG_FORM = "long_form"
    HIGH_VOLUME = "high_volume"

    @property
    def sizes(self) -> tuple[int, int]:
        return {"quick_chat": (5, 3), "standard": (10, 8), "long_form": (25, 10), "high_volume": (15, 8)}[self]


class ToolUseConfig(Setting):
    """A tool of the agent, described so that learnings about it can be understood."""

    tool_name: NonEmpty
    tool_description: NonEmpty


class ProfileExtractorConfig(Setting):
    """One type of profile: what counts as a fact about a user."""

    renamed = legacy.PROFILE_NAMES
    retired = legacy.PROFILE_RETIRED

    extractor_name: Name = "profile"
    extraction_definition_prompt: Prompt
    context_prompt: str | None = None
    request_sources_enabled: Sources = None
    allow_manual_trigger: Flag = True
    manual_trigger: Flag = False


class PlaybookAggregatorConfig(Setting):
    """When and how user playbooks are aggregated."""

    renamed = legacy.AGGREGATOR_NAMES

    min_cluster_size: Annotated[Whole, Field(ge=1, le=1_000_000)] = 2
    min_distinct_users: Annotated[Whole, Field(ge=1, le=1_000_000)] = 1
    reaggregation_trigger_count: Annotated[Whole, Field(ge=1, le=1_000_000)] = 2
    clustering_similarity: Share | None = None
    direction_overlap_threshold: Share = 0.6


class PlaybookConfig(Setting):
    """One type of playbook: what to look for, and what to record about it."""

    renamed = legacy.PLAYBOOK_NAMES
    retired = legacy.PLAYBOOK_RETIRED

    playbook_name: Name = DEFAULT_PLAYBOOK
    playbook_definition_prompt: Prompt
    metadata_definition_prompt: str | None = None
    context_prompt: str | None = None
    playbook_aggregator_config: Annotated[
        PlaybookAggregatorConfig, BeforeValidator(lambda value: {} if value is None else value)
    ] = PlaybookAggregatorConfig()
    request_sources_enabled: Sources = None
    allow_manual_trigger: Flag = True


class PlaybookOptimizerConfig(Setting):
    """The search for better wording of playbooks with the real assistant."""

    enabled: Flag = False
    optimize_agent_playbooks: Flag = True
    optimize_user_playbooks: Flag = False
    auto_update_pending_agent_playbooks: Flag = True
    auto_update_user_playbooks: Flag = False
    max_metric_calls: Positive = 20
    max_turns: Positive = 4
    early_stop_score: Share = 0.9
    reflection_minibatch_size: Positive = 2
    max_validation_windows: Positive = 2
    min_commit_windows: Positive = 2
    min_commit_score: Share = 0.75
    min_commit_likert: Annotated[Whole, Field(ge=1, le=5)] = 4
    use_merge: Flag = True
    max_merge_invocations: Annotated[Whole, Field(ge=0, le=1_000_000)] = 5
    reflection_model: str | None = None
    webhook_url: OutgoingUrl | None = None
    webhook_auth_header: Secret | None = None
    webhook_timeout_seconds: Positive = 60
    webhook_max_retries: Annotated[Whole, Field(ge=0, le=1000)] = 3
    webhook_backoff_base_seconds: Annotated[Number, Field(ge=0.0, le=86_400)] = 1.0
    assistant_script_path: str | None = None
    assistant_script_args: list[str] = []
    scheduler_jitter_seconds: Annotated[Number, Field(ge=0.0, le=86_400)] = 1.0
    cooldown_after_aborts_seconds: Annotated[Whole, Field(ge=0, le=1_000_000_000)] = 3600
    abort_cooldown_threshold: Annotated[Whole, Field(ge=1, le=1_000_000)] = 2

    @model_validator(mode="after")
    def _one_backend(self) -> Self:
        if self.webhook_url and self.assistant_script_path:
            raise ValueError("configure webhook_url or assistant_script_path, not both")
        return self


class LLMConfig(Setting):
    """The models to use; missing names come from the server's settings."""

    retired = legacy.LLM_RETIRED

    generation_model_name: str | None = None
    embedding_model_name: str | None = None
    generation_timeout_seconds: Positive | None = None
    max_output_tokens: Annotated[Whole, Field(ge=256, le=1_000_000)] | None = None
    concurrency: Annotated[Whole, Field(ge=1, le=1000)] | None = None
    structured_output: Literal["tools", "json_schema", "prompt"] | None = None


class ProviderKey(Setting):
    """A key for one provider, and its address if it is not the usual one."""

    retired = legacy.PROVIDER_RETIRED

    api_key: Secret | None = None
    api_base: OutgoingUrl | None = None


class CustomEndpointConfig(Setting):
    """Any OpenAI-compatible server."""

    model: NonEmpty
    api_key: Secret
    api_base: Annotated[NonEmpty, AfterValidator(check_url)]


class APIKeyConfig(Setting):
    """Provider keys of this organisation. They are stored and never returned."""

    custom_endpoint: CustomEndpointConfig | None = None
    openai: ProviderKey | None = None
    anthropic: ProviderKey | None = None
    openrouter: ProviderKey | None = None
    gemini: ProviderKey | None = None
    minimax: ProviderKey | None = None
    deepseek: ProviderKey | None = None
    dashscope: ProviderKey | None = None
    zai: ProviderKey | None = None
    moonshot: ProviderKey | None = None
    xai: ProviderKey | None = None


def _profiles() -> list[ProfileExtractorConfig]:
    definition = (
        "Lasting facts about the user that would help to serve them better next time: who they are, what they "
        "prefer and avoid, what they own, work on or plan, and under which constraints."
    )
    return [ProfileExtractorConfig(extraction_definition_prompt=definition)]


def _playbooks() -> list[PlaybookConfig]:
    definition = (
        "What the agent should do differently, or again, in a situation that will come back: corrections and "
        "instructions by the user, a way that finally worked after others had failed, an approach the user "
        "rejected, and what an expert would have answered instead."
    )
    return [PlaybookConfig(playbook_definition_prompt=definition)]


def _cleared(value: Any) -> Any:
    return [] if value is None else value


class Config(Setting):
    """The learning settings of one organisation.

    >>> config = Config(window_size=20)
    >>> config.playbook_configs = [{"playbook_name": "tone", "playbook_definition_prompt": "How to speak"}]
    >>> config.playbook_configs[0].playbook_name
    'tone'
    """

    renamed = legacy.ROOT_NAMES
    retired = legacy.ROOT_RETIRED

    agent_context_prompt: str | None = None
    tool_can_use: Annotated[list[ToolUseConfig], BeforeValidator(_cleared)] = []
    profile_extractor_configs: Annotated[list[ProfileExtractorConfig], BeforeValidator(_cleared)] = Field(
        default_factory=_profiles, max_length=100
    )
    playbook_configs: Annotated[list[PlaybookConfig], BeforeValidator(_cleared)] = Field(
        default_factory=_playbooks, max_length=100
    )
    extraction_preset: ExtractionPreset | None = None
    window_size: Annotated[Whole, Field(gt=0, le=1000)] = 10
    stride_size: Annotated[Whole, Field(gt=0, le=1000)] = 8
    extraction_idle_timeout_seconds: Annotated[Whole, Field(ge=0, le=31_536_000)] = 60
    api_key_config: APIKeyConfig | None = None
    llm_config: LLMConfig | None = None
    playbook_optimizer_config: PlaybookOptimizerConfig = PlaybookOptimizerConfig()
    daily_token_budget: Annotated[Whole, Field(ge=0, le=10**15)] | None = None
    context_always_share: Share = 0.33
    redaction: Redaction = []

    @classmethod
    def stored(cls, document: str | None) -> "Config":
        """The configuration in force, from what is stored."""
        return cls.model_validate_json(document) if document else cls()

    @model_validator(mode="before")
    @classmethod
    def _plural(cls, raw: Any) -> Any:
        return legacy.pluralise(raw) if isinstance(raw, dict) else raw

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        names = [each.playbook_name for each in self.playbook_configs]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"playbook_configs name {', '.join(map(repr, twice))} more than once")
        return self

    @property
    def profile_extractor_config(self) -> ProfileExtractorConfig | None:
        """The first profile extractor, under the name that published clients use."""
        return next(iter(self.profile_extractor_configs), None)

    @profile_extractor_config.setter
    def profile_extractor_config(self, first: ProfileExtractorConfig | dict[str, Any] | None) -> None:
        self.profile_extractor_configs = _with_first(self.profile_extractor_configs, first)

    @property
    def user_playbook_extractor_config(self) -> PlaybookConfig | None:
        """The first type of playbook, under the name that published clients use."""
        return next(iter(self.playbook_configs), None)

    @user_playbook_extractor_config.setter
    def user_playbook_extractor_config(self, first: PlaybookConfig | dict[str, Any] | None) -> None:
        self.playbook_configs = _with_first(self.playbook_configs, first)


def _with_first(entries: list[S], first: S | dict[str, Any] | None) -> list[S]:
    """The list with another first entry. A dict changes the fields it names; None clears the list."""
    if first is None:
        return []
    if isinstance(first, dict) and entries:
        kind = type(entries[0])
        named = legacy.translate(first, renamed=kind.renamed, retired=kind.retired)
        first = kind.model_validate({**entries[0].model_dump(exclude_unset=True), **named})
    # A dict becomes a model when the list is assigned.
    return [first, *entries[1:]]  # type: ignore[list-item]


class SetConfigResponse(BaseModel):
    """Whether the configuration was saved. Fields can also be read by key, as in published clients."""

    success: bool = True
    msg: str | None = None

    def __getitem__(self, name: str) -> Any:
        return self.model_dump()[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.model_dump().get(name, default)


class WhoamiResponse(BaseModel):
    """The organisation of the key."""

    success: bool = True
    org_id: str
    scopes: list[KeyScope] = list(KeyScope)
    owner: str = ""
    storage_type: str | None = None
    storage_label: str | None = None
    storage_configured: bool = True
    message: str = ""


class StorageStatsResponse(BaseModel):
    """What is stored of one user."""

    success: bool = True
    profile_count: int = 0
    playbook_count: int = 0
    interaction_count: int = 0
    request_count: int = 0
    unembedded_count: int = 0
    unread_count: int = 0
    redacted_count: int = 0
    oldest_profile_modified: str | None = None
    newest_profile_modified: str | None = None
    msg: str | None = None
