"""The learning settings of an organisation: read, change, validate. Settings that a change does not name stay."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import ValidationError

from reflexio.errors import InvalidRequest
from reflexio.models import legacy
from reflexio.models.config import MASK, Config, ExtractionPreset, SetConfigResponse
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Store, Tx

SENT_TO = {"api_key": "api_base", "webhook_auth_header": "webhook_url"}
"""Each secret and the setting that says to which address it is sent."""


def stored_config(tx: Tx) -> Config:
    """The configuration in force."""
    return Config.stored(tx.configs.get())


def with_secrets(config: Config) -> dict[str, Any]:
    """The whole document with its secrets, for the database."""
    return config.model_dump(mode="json", context={"reveal": True})


async def get(store: Store) -> dict[str, Any]:
    """The whole document without its secrets, also under the singular names that published clients know."""
    config = await store.read(stored_config)
    shown = config.model_dump(mode="json")
    return {**legacy.singulars(shown), **shown}


Check = Callable[[Config, Config], None]
"""Raises InvalidRequest when one configuration must not become the other."""
CheckAssistant = Callable[[Config, Config], Awaitable[None]]
"""The same, for what takes a look at the database: whether the assistant may be called."""


def accept(before: Config, after: Config) -> None:
    """The check that refuses nothing."""


async def change(
    store: Store,
    clock: Clock,
    raw: dict[str, Any],
    check: Check = accept,
    check_assistant: CheckAssistant | None = None,
) -> SetConfigResponse:
    """Stores a change. The checks may refuse what this module cannot know, such as a model without a key."""
    now = clock.now()
    if check_assistant:
        before = await store.read(stored_config)
        await check_assistant(before, apply_changes(before, raw)[0])

    def apply(tx: Tx) -> SetConfigResponse:
        before = stored_config(tx)
        after, notes = apply_changes(before, raw)
        cap, budget = tx.spending.max_daily_tokens, after.daily_token_budget
        if cap is not None and budget is not None and budget > cap:
            notes.append(f"daily_token_budget is above {cap}, the cap of this server's operator, which holds")
        if after == before and tx.configs.get():
            return SetConfigResponse(msg="; ".join(["Configuration unchanged", *notes]))
        check(before, after)
        tx.configs.put(json.dumps(with_secrets(after)), now)
        # The change may fix what made learning wait.
        tx.users.wake()
        return SetConfigResponse(msg="; ".join(["Configuration saved", *notes]))

    return await store.write(apply)


def apply_changes(before: Config, raw: dict[str, Any]) -> tuple[Config, list[str]]:
    """The configuration with the changes in `raw`, and notes for the caller."""
    old = with_secrets(before)
    renamed = legacy.pluralise(legacy.singular_first(raw, old))
    changes = {key: value for key, value in renamed.items() if key not in Config.retired}
    for key in ("playbook_optimizer_config", "window_size", "stride_size", "extraction_idle_timeout_seconds"):
        if key in changes and changes[key] is None:
            changes[key] = Config().model_dump(mode="json")[key]
    sizes, notes = _window_sizes(old, changes)
    try:
        after = Config.model_validate({**old, **_unmasked(changes, old), **sizes})
    except ValidationError as error:
        raise InvalidRequest("The configuration is not valid.", errors=[*map(_error_details, error.errors())]) from None
    if after.stride_size > after.window_size:
        raise InvalidRequest(
            f"stride_size ({after.stride_size}) must not be greater than window_size ({after.window_size})."
        )
    if unused := legacy.unused(raw):
        notes.append(f"not used by this server: {', '.join(unused)}")
    return after, notes


def _window_sizes(old: dict[str, Any], changes: dict[str, Any]) -> tuple[dict[str, int], list[str]]:
    """Window and stride of a changed preset, or the stride that a smaller window requires."""
    own = {name for name in ("window_size", "stride_size") if changes.get(name, old[name]) != old[name]}
    preset = changes.get("extraction_preset")
    if preset in list(ExtractionPreset) and preset != old["extraction_preset"]:
        sizes = dict(zip(("window_size", "stride_size"), ExtractionPreset(preset).sizes, strict=True))
        return {name: size for name, size in sizes.items() if name not in own}, []
    window = changes.get("window_size", old["window_size"])
    if own == {"window_size"} and isinstance(window, int) and 0 < window < old["stride_size"]:
        return {"stride_size": window}, [f"stride_size lowered to {window}, the window"]
    return {}, []


def _unmasked(new: Any, old: Any, place: str = "") -> Any:
    """Replaces masked values by the stored secrets behind them."""
    if isinstance(new, dict):
        known = old if isinstance(old, dict) else {}
        new = _with_address(new, known, place)
        return {key: _unmasked(value, known.get(key), f"{place}.{key}") for key, value in new.items()}
    if new == MASK and not isinstance(old, str):
        raise InvalidRequest(f"{place.lstrip('.')} is masked and there is no secret behind it: send the secret itself.")
    return old if new == MASK else new


def _with_address(new: dict[str, Any], old: dict[str, Any], place: str) -> dict[str, Any]:
    """Keeps a masked secret with its stored address. Raises InvalidRequest when the address changes.

    Otherwise a caller who does not know the secret could send it to an address of their choice. Published clients
    have no name for the address of a provider; it stays with its key.
    """
    for secret, address in SENT_TO.items():
        if new.get(secret) != MASK or not old.get(secret):
            continue
        new = {address: old.get(address), **new}
        moved = (new.get(address) or None) != (old.get(address) or None)
        # A header without an address is never sent, but a key without one is sent to the provider's usual address.
        is_sent = new.get(address) or address != "webhook_url"
        if moved and is_sent:
            raise InvalidRequest(
                f"{place.lstrip('.')}.{secret} is masked and {address} is another one: send the secret itself again."
            )
    return new


def _error_details(error: Any) -> dict[str, Any]:
    return {"loc": list(error["loc"]), "msg": error["msg"], "type": error["type"]}
