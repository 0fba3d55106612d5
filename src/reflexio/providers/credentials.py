"""Base URLs and keys of APIs, from what people write and copy: whole addresses of endpoints, keys with a line end."""

import re

from reflexio.errors import InvalidRequest, ProviderRefused

ENDPOINTS = ("/chat/completions", "/completions", "/embeddings", "/models", "/responses")
_SENDABLE = re.compile(r"[!-~]*")


def base_url_of(written: str, name: str) -> str:
    """Without the name of an endpoint and a slash at the end. `name` is what is called there.

    Raises InvalidRequest for anything that no endpoint can be added to.

    >>> base_url_of("http://127.0.0.1:8080/v1/chat/completions", "custom:qwen3")
    'http://127.0.0.1:8080/v1'
    """
    url = written.strip()
    if not url.startswith(("http://", "https://")):
        raise InvalidRequest(f"The base URL {url!r} of {name!r} does not begin with http:// or https://.")
    if "?" in url or "#" in url:
        root = url.partition("?")[0].partition("#")[0]
        raise InvalidRequest(
            f"The base URL of {name!r} has a query or a fragment behind {root!r}: leave it out. For Azure, write "
            "https://<resource>.openai.azure.com/openai/v1."
        )
    url = url.rstrip("/")
    for endpoint in ENDPOINTS:
        url = url.removesuffix(endpoint)
    return url.rstrip("/")


def key_of(written: str, name: str) -> str:
    """Without blanks around it, and without the word that belongs to the header. `name` is what is called with it.

    Raises ProviderRefused for a key that no header can hold; the key is not shown.

    >>> key_of(" Bearer sk-1234 ", "openai:gpt-5")
    'sk-1234'
    """
    key = re.sub(r"^Bearer\s+", "", written.strip(), flags=re.IGNORECASE)
    if not _SENDABLE.fullmatch(key):
        words = "a blank, a line end, a typographic quote or another character that no key has"
        raise ProviderRefused(f"The key for {name!r} holds {words}: copy it again.", reason="auth")
    return key
