"""Settings: the configuration of an organisation as a form, what a change would do, and its keys and models."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from starlette.responses import Response

from reflexio.dashboard.routing import Pages
from reflexio.dashboard.settings_form import form_of, read_form
from reflexio.dashboard.visit import Form, Visit
from reflexio.doctor import Finding, examine_models
from reflexio.errors import InvalidRequest
from reflexio.model_choice import configured_models
from reflexio.models.access import KeyScope
from reflexio.models.config import Config
from reflexio.organisations import configuration
from reflexio.organisations.configuration import stored_config
from reflexio.organisations.configuration_preview import ConfigurationPreview, preview
from reflexio.ports.storage import Tx

pages = Pages()

SECTIONS = (
    (
        "What is learned",
        "learned",
        ("agent_context_prompt", "profile_extractor_configs", "playbook_configs", "tool_can_use"),
    ),
    ("When", "when", ("extraction_preset", "window_size", "stride_size", "extraction_idle_timeout_seconds")),
    ("Model", "model", ("llm_config", "api_key_config")),
    ("Limits and privacy", "limits", ("daily_token_budget", "context_always_share", "redaction")),
    ("Optimiser", "optimiser", ("playbook_optimizer_config",)),
)
"""The sections of the form, with the settings in each. A test keeps them complete."""
CHANGED = "Somebody else has changed the settings since you opened this page. Below is what is stored now."


@dataclass(frozen=True)
class Tried:
    """What was entered: the document, and what became of it when it was checked."""

    document: Mapping[str, Any]
    preview: ConfigurationPreview | None = None
    error: str = ""
    faults: Mapping[str, str] | None = None


@pages.get("/settings", KeyScope.READ)
async def settings(visit: Visit) -> Response:
    """The form. Without the scope admin it only shows."""
    return await _show(visit)


@pages.post("/settings", KeyScope.ADMIN)
async def change(visit: Visit) -> Response:
    """Shows what the change would do, or saves it."""
    form = await visit.form()
    typed = form.get("document", "")
    try:
        document = _read(form)
    except InvalidRequest as error:
        return await _show(visit, error=str(error), status=422, json_text=typed)
    current = await visit.store.read(stored_config)
    if form.get("base", "") != digest(current):
        return await _show(visit, error=CHANGED, status=409)
    tried = await _try(visit, document)
    if tried.error or form.get("act") != "save":
        return await _show(visit, tried, status=422 if tried.error else 200, json_text=typed)
    try:
        saved = await _save(visit, document)
    except InvalidRequest as error:
        return await _show(visit, _refused(document, error), status=422, json_text=typed)
    return visit.go("/settings", saved)


@pages.get("/settings/models", KeyScope.READ)
async def models(visit: Visit) -> Response:
    """The models in use. None is called."""
    return await _show_models(visit, None)


@pages.post("/settings/models", KeyScope.ADMIN)
async def test_models(visit: Visit) -> Response:
    """Asks each model a tiny question, and shows what it answered."""
    return await _show_models(visit, await examine_models(visit.parts, visit.caller.org_id))


async def _show_models(visit: Visit, tested: list[Finding] | None) -> Response:
    config, embedder = await visit.store.read(stored_config), visit.parts.embedder
    return visit.page(
        "models.html",
        problems=await visit.parts.model_problems(visit.caller.org_id),
        models=list(configured_models(visit.parts.settings, config)),
        embedder=f"{embedder.name}, {embedder.dimensions} dimensions",
        tested=tested,
    )


async def _save(visit: Visit, document: Mapping[str, Any]) -> str:
    checks = (visit.parts.check_config, visit.parts.optimisation.check_assistant)
    saved = await configuration.change(visit.store, visit.parts.clock, dict(document), *checks)
    return f"{saved.msg}."


async def _try(visit: Visit, document: Mapping[str, Any]) -> Tried:
    """Everything that saving checks, and what would follow. Nothing is stored."""
    try:
        before, planned = await preview(visit.store, visit.parts.clock, dict(document))
        visit.parts.check_config(before, planned.after)
        await visit.parts.optimisation.check_assistant(before, planned.after)
    except InvalidRequest as error:
        return _refused(document, error)
    return Tried(document, await _with_obstacle(visit, before, planned))


async def _with_obstacle(visit: Visit, before: Config, planned: ConfigurationPreview) -> ConfigurationPreview:
    """Says too why the optimiser could not run, when the change enables it."""
    if before.playbook_optimizer_config.enabled or not planned.after.playbook_optimizer_config.enabled:
        return planned
    obstacle = await visit.parts.optimisation.backends.obstacle(planned.after)
    effects = (*planned.effects, f"But the optimiser cannot run yet. {obstacle}") if obstacle else planned.effects
    return replace(planned, effects=effects)


def _refused(document: Mapping[str, Any], error: InvalidRequest) -> Tried:
    faults = {".".join(map(str, fault["loc"])): fault["msg"].removeprefix("Value error, ") for fault in error.errors}
    return Tried(document, error=str(error), faults=faults)


def _read(form: Form) -> dict[str, Any]:
    """What the form holds; the document as JSON when that was edited."""
    if "document" not in form:
        return read_form(form, {name: form.getlist(name) for name in form})
    try:
        document = json.loads(form["document"])
    except ValueError as error:
        raise InvalidRequest(f"This is not valid JSON: {error}.") from None
    if not isinstance(document, dict):
        raise InvalidRequest("The document must be a JSON object.")
    return document


async def _show(
    visit: Visit, tried: Tried | None = None, *, status: int = 200, error: str = "", json_text: str = ""
) -> Response:
    def read(tx: Tx) -> tuple[Config, int | None]:
        return stored_config(tx), tx.spending.max_daily_tokens

    config, cap = await visit.store.read(read)
    stored = config.model_dump(mode="json")
    # What was typed as JSON may have any shape: the form shows what is stored then.
    shown = {**stored, **tried.document} if tried and not json_text else stored
    fields = {field.path: field for field in form_of(shown)}
    return visit.page(
        "settings.html",
        status=status,
        sections=[(title, anchor, [fields[name] for name in names]) for title, anchor, names in SECTIONS],
        preview=tried.preview if tried else None,
        error=error or (tried.error if tried else ""),
        faults=(tried.faults if tried else None) or {},
        base=digest(config),
        document=json_text or json.dumps(shown, indent=2, ensure_ascii=False),
        json_is_open=bool(json_text),
        cap=cap,
        setting_text=setting_text,
        models=await visit.parts.model_problems(visit.caller.org_id),
    )


def setting_text(value: object) -> str:
    """The value of a setting for people.

    >>> [setting_text(value) for value in (None, True, 200_000, ["email", "key"], 0.5, "a")]
    ['–', 'yes', '200,000', 'email, key', '0.5', 'a']
    """
    match value:
        case None | "":
            return "–"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case list():
            return ", ".join(map(str, value))
        case _:
            return str(value)


def digest(config: Config) -> str:
    """Another one after each change, so that two people do not overwrite each other. Secrets do not count."""
    return sha256(config.model_dump_json().encode()).hexdigest()[:16]
