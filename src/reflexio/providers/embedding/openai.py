"""Any embeddings endpoint that speaks OpenAI's protocol, theirs or a local server's."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray

from reflexio.errors import ProviderError, ProviderRefused, ProviderUnavailable
from reflexio.providers.refusal import is_out_of_credit

OPENAI_URL = "https://api.openai.com/v1"
TEXTS_PER_REQUEST = 128
# A token is at least one byte, so this many always fit the 8,191 tokens that OpenAI's models read.
READ_BYTES = 8_000
TIMEOUT = httpx.Timeout(30, connect=5)


@dataclass(frozen=True)
class EmbeddingModel:
    """A model at an endpoint.

    `shortened` when vectors shorter than its own are asked of it; `stated` when only the operator says how long
    they are: then the length is part of the name, because another model may come to stand behind it.
    """

    model: str
    dimensions: int
    shortened: bool = False
    stated: bool = False

    @property
    def name(self) -> str:
        told = self.shortened or self.stated
        return f"openai:{self.model}@{self.dimensions}" if told else f"openai:{self.model}"


class OpenAIEmbedder:
    """Embeds over HTTP. Blank texts are not sent (endpoints refuse them): they get one fixed unit vector."""

    def __init__(self, model: EmbeddingModel, *, api_key: str = "", base_url: str = "") -> None:
        self._model = model
        self._client = httpx.AsyncClient(
            base_url=base_url or OPENAI_URL,
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            timeout=TIMEOUT,
        )

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def dimensions(self) -> int:
        return self._model.dimensions

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        vectors[:, 0] = 1
        sent = [place for place, text in enumerate(texts) if text.strip()]
        for start in range(0, len(sent), TEXTS_PER_REQUEST):
            places = sent[start : start + TEXTS_PER_REQUEST]
            vectors[places] = await self._ask([_readable(texts[place]) for place in places])
        return vectors

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _ask(self, texts: list[str]) -> NDArray[np.float32]:
        wanted = {"dimensions": self.dimensions} if self._model.shortened else {}
        body = {"model": self._model.model, "input": texts, "encoding_format": "float", **wanted}
        try:
            response = await self._client.post("embeddings", json=body)
        except httpx.RequestError as error:
            raise ProviderUnavailable(f"{self.name}: {type(error).__name__} {error}") from error
        if not response.is_success:
            raise _refusal(self.name, response)
        return _vectors(self._model, response, count=len(texts))


def _readable(text: str) -> str:
    """Lone surrogates cannot be sent and become question marks; what no model reads is cut off."""
    return text[:READ_BYTES].encode("utf-8", "replace")[:READ_BYTES].decode("utf-8", "ignore")


def _refusal(name: str, response: httpx.Response) -> ProviderError:
    detail = f"{name}: HTTP {response.status_code} {response.text[:300]}"
    match response.status_code:
        case 402:
            return ProviderRefused(detail, reason="billing")
        case 401 | 403:
            return ProviderRefused(detail, reason="auth")
        case 429 if is_out_of_credit(response.text):
            return ProviderRefused(detail, reason="billing")
        case 408 | 429:
            return ProviderUnavailable(detail)
        case status if status >= 500:
            return ProviderUnavailable(detail)
        case _:
            return ProviderError(detail)


def _vectors(model: EmbeddingModel, response: httpx.Response, *, count: int) -> NDArray[np.float32]:
    try:
        vectors = np.array([row["embedding"] for row in _in_order(response.json()["data"])], np.float64)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise ProviderError(f"{model.name}: the answer is no list of embeddings ({error!r}).") from error
    if vectors.shape != (count, model.dimensions):
        raise ProviderError(f"{model.name}: wanted {(count, model.dimensions)} numbers, got {vectors.shape}.")
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    if not (np.isfinite(largest).all() and largest.all()):
        raise ProviderError(f"{model.name}: a vector is zero or holds numbers that are not finite.")
    vectors /= largest  # first, so that squares of huge numbers do not overflow
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)


def _in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    ordered = sorted(rows, key=lambda row: int(row["index"]))
    if [row["index"] for row in ordered] != list(range(len(rows))):
        raise ValueError("indexes are missing or repeated")
    return ordered
