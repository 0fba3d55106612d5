"""From the configuration to the assistant. Imports nothing heavy."""

from pathlib import Path

import httpx

from reflexio.errors import InvalidRequest
from reflexio.models.config import PlaybookOptimizerConfig
from reflexio.ports.assistant import Assistant
from reflexio.providers.assistants.exchange import Patience

NONE = "There is no assistant to try playbooks with: set webhook_url or assistant_script_path."


def resolve(config: PlaybookOptimizerConfig, *, scripts: Path | None) -> Assistant:
    """Raises InvalidRequest, with the reason, when there is none that can be called.

    Scripts must lie in the folder `scripts`; `None` forbids them.
    """
    patience = Patience(
        float(config.webhook_timeout_seconds), config.webhook_max_retries, config.webhook_backoff_base_seconds
    )
    if config.webhook_url and config.assistant_script_path:
        raise InvalidRequest("Two assistants are configured; set webhook_url or assistant_script_path, not both.")
    if config.webhook_url:
        from reflexio.providers.assistants.webhook import WebhookAssistant

        secret = config.webhook_auth_header.get_secret_value() if config.webhook_auth_header else ""
        return WebhookAssistant(_address(config.webhook_url), auth_header=_header(secret), patience=patience)
    if config.assistant_script_path:
        from reflexio.providers.assistants.script import ScriptAssistant

        path = _program(config.assistant_script_path, scripts)
        return ScriptAssistant(path, config.assistant_script_args, patience=patience)
    raise InvalidRequest(NONE)


def _address(url: str) -> str:
    try:
        read = httpx.URL(url.strip())
    except httpx.InvalidURL as error:
        raise InvalidRequest(f"webhook_url {url!r} is no address: {error}.") from error
    if read.scheme not in ("http", "https") or not read.host:
        raise InvalidRequest(f"webhook_url {url!r} does not begin with http:// or https:// and a host.")
    return str(read)


def _header(secret: str) -> str:
    if not secret.isprintable() or not secret.isascii():
        raise InvalidRequest("webhook_auth_header holds characters that a header cannot have.")
    return secret


def _program(path: str, scripts: Path | None) -> Path:
    from reflexio.providers.assistants.script import obstacle

    program = Path(path).expanduser()
    if scripts is None:
        raise InvalidRequest("This server runs no scripts: it can be reached from elsewhere. Set REFLEXIO_SCRIPTS.")
    if not program.resolve().is_relative_to(scripts.resolve()):
        raise InvalidRequest(f"The assistant script {path!r} is not in {str(scripts)!r} (REFLEXIO_SCRIPTS).")
    if reason := obstacle(program):
        raise InvalidRequest(reason)
    return program
