"""Setting names of earlier releases, and their translation.

A renamed name is read as its new one. A retired name is accepted and dropped, because published clients send
it with every write; `unused` tells which retired names a caller really set, so that nothing vanishes silently.
"""

from collections.abc import Mapping
from typing import Any

from reflexio.errors import InvalidRequest

PLAYBOOK_NAMES = {
    "extractor_name": "playbook_name",
    "feedback_name": "playbook_name",
    "extraction_definition_prompt": "playbook_definition_prompt",
    "feedback_definition_prompt": "playbook_definition_prompt",
    "aggregation_config": "playbook_aggregator_config",
    "feedback_aggregator_config": "playbook_aggregator_config",
}
EXTRACTOR_RETIRED = frozenset({"tagging_definition_prompt", "window_size_override", "stride_size_override"})
PLAYBOOK_RETIRED = EXTRACTOR_RETIRED | {"deduplication_config"}
PROFILE_NAMES = {"profile_content_definition_prompt": "extraction_definition_prompt"}
PROFILE_RETIRED = EXTRACTOR_RETIRED | {"should_extract_profile_prompt_override"}
AGGREGATOR_NAMES = {
    "min_feedback_threshold": "min_cluster_size",
    "refresh_count": "reaggregation_trigger_count",
    "similarity_threshold": "clustering_similarity",
}
LLM_RETIRED = frozenset({"should_run_model_name", "pre_retrieval_model_name"})
PROVIDER_RETIRED = frozenset({"azure_config"})
_RETIRED_SETTINGS = """
storage_config storage_config_test agent_success_config retrieval_experiment_config retrieval_experiment_history
retrieval_floor lineage_gc expiry_reclamation governance_retention pending_tool_call_config offline_tuner_config
skip_should_run_check enable_document_expansion shadow_mode_enabled eval_sample_n_per_stratum eval_concurrency_limit
shadow_comparison_judge_prompt_version
"""
ROOT_RETIRED = frozenset(_RETIRED_SETTINGS.split())
SIZES = {
    "batch_size": "window_size",
    "batch_interval": "stride_size",
    "extraction_window_size": "window_size",
    "extraction_window_stride": "stride_size",
}
OLD_LISTS = {"user_playbook_extractor_configs": "playbook_configs", "agent_feedback_configs": "playbook_configs"}
PLURALS = {
    "profile_extractor_config": "profile_extractor_configs",
    "user_playbook_extractor_config": "playbook_configs",
    **OLD_LISTS,
}
ROOT_NAMES = {**SIZES, **OLD_LISTS}
SINGULARS = {
    "profile_extractor_config": (PROFILE_NAMES, PROFILE_RETIRED),
    "user_playbook_extractor_config": (PLAYBOOK_NAMES, PLAYBOOK_RETIRED),
}


def translate(raw: Mapping[str, Any], *, renamed: Mapping[str, str], retired: frozenset[str]) -> dict[str, Any]:
    """The same settings under today's names. A new name wins over an old one."""
    today = {key: value for key, value in raw.items() if key not in renamed and key not in retired}
    for old, new in renamed.items():
        if raw.get(old) is not None:
            today.setdefault(new, raw[old])
    return today


def pluralise(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Root settings with today's lists. A singular name means a list of one; null clears the list."""
    today = translate(raw, renamed=SIZES, retired=frozenset())
    for old, new in PLURALS.items():
        if old in today:
            value = today.pop(old)
            today.setdefault(new, [value] if isinstance(value, Mapping) else value or [])
    return today


def singular_first(raw: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Changes of a client that knows only the singular names.

    Such a client sees the first entry of each list and sends it back with every write. Its entry takes the
    place of the first one, which keeps what the client has no name for, and the others stay: an unrelated
    change never costs a playbook type or a part of one.

    Where list and entry are both given, as in a document that was read from the server, the one that was
    edited counts. Two different edits are an error.
    """
    changes = dict(raw)
    for one, (renamed, retired) in SINGULARS.items():
        many = PLURALS[one]
        if not isinstance(changes.get(one), Mapping) and (one not in changes or changes.get(many) is None):
            continue
        kept = stored.get(many) or []
        entry = changes.pop(one)
        first, *rest = kept or [{}]
        edited = [] if entry is None else [_merge(first, translate(entry, renamed=renamed, retired=retired)), *rest]
        if changes.get(many) is None or _is_same(changes[many], kept, renamed, retired):
            changes[many] = edited
        elif edited != kept and not _is_same(changes[many], edited, renamed, retired):
            raise InvalidRequest(f"{one} and {many} were both changed, and differently: change one of them.")
    return changes


def _merge(first: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry over what is stored. Of the aggregator's settings such a client knows some only; the others stay."""
    merged, nested = {**first, **entry}, "playbook_aggregator_config"
    if isinstance(entry.get(nested), Mapping) and isinstance(first.get(nested), Mapping):
        merged[nested] = {**first[nested], **translate(entry[nested], renamed=AGGREGATOR_NAMES, retired=frozenset())}
    return merged


def _is_same(given: Any, kept: list[Any], renamed: Mapping[str, str], retired: frozenset[str]) -> bool:
    if not isinstance(given, list) or len(given) != len(kept) or not all(isinstance(each, Mapping) for each in given):
        return False
    today = [translate(each, renamed=renamed, retired=retired) for each in given]
    return all({**old, **new} == old for old, new in zip(kept, today, strict=True))


def singulars(config: Mapping[str, Any]) -> dict[str, Any]:
    """The singular view of the lists, for clients that know only that."""
    profiles, playbooks = config["profile_extractor_configs"], config["playbook_configs"]
    view: dict[str, Any] = {
        "storage_config": None,
        "profile_extractor_config": profiles[0] if profiles else None,
        "user_playbook_extractor_config": None,
    }
    if playbooks:
        first = view["user_playbook_extractor_config"] = dict(playbooks[0])
        for old in ("extractor_name", "extraction_definition_prompt", "aggregation_config"):
            first[old] = first.pop(PLAYBOOK_NAMES[old])
    return view


def unused(raw: Mapping[str, Any]) -> list[str]:
    """Retired settings that the caller sent, sorted: they have no effect."""
    entries = [raw.get(one) for one in PLURALS] + [raw.get(many) for many in set(PLURALS.values())]
    lists = [entry if isinstance(entry, list) else [entry] for entry in entries]
    extractors = [entry for many in lists for entry in many if isinstance(entry, Mapping)]
    nested = PLAYBOOK_RETIRED | PROFILE_RETIRED
    found = _given(raw, ROOT_RETIRED) | _given(raw.get("llm_config") or {}, LLM_RETIRED)
    return sorted(found.union(*(_given(entry, nested) for entry in extractors)))


def _given(raw: Any, names: frozenset[str]) -> set[str]:
    settings = raw if isinstance(raw, Mapping) else {}
    return {name for name in names if settings.get(name) not in (None, [], {}, False, 0)}
