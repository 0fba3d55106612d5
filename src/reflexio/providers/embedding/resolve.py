"""From the name of an embedder to the embedder. Imports only the one that is named, numpy included."""

from typing import TYPE_CHECKING

from reflexio.errors import InvalidRequest, ProviderRefused
from reflexio.ports.embedding import Embedder
from reflexio.providers.credentials import base_url_of, key_of

if TYPE_CHECKING:
    from reflexio.providers.embedding.openai import EmbeddingModel

LOCAL = {"local", "local:all-MiniLM-L6-v2", "local/all-MiniLM-L6-v2"}
# The native length of each model's vectors; for any other model the name states it: `openai:my-model@768`.
DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "nomic-embed-text": 768,
    "mxbai-embed-large": 1024,
    "bge-m3": 1024,
    "all-minilm": 384,
}
SHORTENABLE = {"text-embedding-3-small", "text-embedding-3-large"}


def resolve(name: str, *, api_key: str = "", base_url: str = "") -> Embedder:
    """The embedder called `local` or `openai:<model>`; key and base URL are for the latter.

    >>> resolve("local").name
    'local:all-MiniLM-L6-v2'
    >>> resolve("openai:nomic-embed-text", base_url="http://127.0.0.1:11434/v1").dimensions
    768
    """
    if name in LOCAL:
        from reflexio.providers.embedding.local import LocalEmbedder

        return LocalEmbedder()
    if name.startswith(("openai:", "openai/")):
        from reflexio.providers.embedding.openai import OpenAIEmbedder

        model = _openai_model(name)
        if not (api_key or base_url):
            raise ProviderRefused(f"{name!r} needs a key: set OPENAI_API_KEY, or OPENAI_BASE_URL for a local server.")
        url = base_url_of(base_url, name) if base_url else ""
        return OpenAIEmbedder(model, api_key=key_of(api_key, name), base_url=url)
    raise InvalidRequest(f"There is no embedder {name!r}; use 'local' or 'openai:<model>'.")


def _openai_model(name: str) -> "EmbeddingModel":
    from reflexio.providers.embedding.openai import EmbeddingModel

    model, _, stated = name.removeprefix("openai:").removeprefix("openai/").partition("@")
    native = DIMENSIONS.get(model)
    if not model or (stated and not (stated.isascii() and stated.isdigit() and int(stated))):
        raise InvalidRequest(f"The embedder {name!r} is not valid; write 'openai:<model>' or 'openai:<model>@768'.")
    if not stated and native is None:
        raise InvalidRequest(f"How long are the vectors of {model!r}? Add it to the name, as in '{name}@768'.")
    if native is not None and stated and int(stated) != native and model not in SHORTENABLE:
        raise InvalidRequest(f"The vectors of {model!r} have {native} numbers, not {stated}.")
    dimensions = int(stated) if stated else native or 0
    return EmbeddingModel(model, dimensions, shortened=native not in (None, dimensions), stated=native is None)
