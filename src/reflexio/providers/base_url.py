"""The base URL of an API, from what people write: often the whole address of one of its endpoints."""

from reflexio.errors import InvalidRequest

ENDPOINTS = ("/chat/completions", "/completions", "/embeddings", "/models", "/responses")


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
