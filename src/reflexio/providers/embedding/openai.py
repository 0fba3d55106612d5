"""Embeddings endpoints with OpenAI's protocol: OpenAI's own, or a local server."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

import httpx
import numpy as np
from numpy.typing import NDArray

from reflexio.errors import ProviderError, ProviderRefused, ProviderUnavailable
from reflexio.providers.billing import is_out_of_credit
from reflexio.providers.outgoing import OPERATORS, AddressRefused

log = logging.getLogger("reflexio")

OPENAI_URL = "https://api.openai.com/v1"
TEXTS_PER_REQUEST = 128
# A token has at least one byte, so this many always fit the 8,191 tokens that OpenAI's models read.
READ_BYTES = 8_000
TIMEOUT = httpx.Timeout(30, connect=5)
TOTAL_SECONDS = 60.0
"""For one request in all: the limit above counts each byte anew, so that a slow endpoint would keep it for ever."""


@dataclass(frozen=True)
class EmbeddingModel:
    """A model at an endpoint.

    `shortened` means that the request asks for vectors shorter than the native ones. `stated` means that only the
    operator states their length: then it is part of the name, because the endpoint may serve another model later.
    """

    model: str
    dimensions: int
    shortened: bool = False
    stated: bool = False

    @property
    def name(self) -> str:
        length = f"@{self.dimensions}" if self.shortened or self.stated else ""
        return f"openai:{self.model}{length}"


class OpenAIEmbedder:
    """Embeds over HTTP. Blank texts are not sent (endpoints refuse them) and get one fixed unit vector."""

    def __init__(self, model: EmbeddingModel, *, api_key: str = "", base_url: str = "") -> None:
        self.name = model.name
        self.dimensions = model.dimensions
        self._model = model
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx.AsyncClient(base_url=base_url or OPENAI_URL, headers=headers, timeout=TIMEOUT)
        # A proxy of the environment stays in use.
        OPERATORS.guard(self._client._transport)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        vectors[:, 0] = 1
        not_blank = [place for place, text in enumerate(texts) if text.strip()]
        for start in range(0, len(not_blank), TEXTS_PER_REQUEST):
            places = not_blank[start : start + TEXTS_PER_REQUEST]
            vectors[places] = await self._request([_sendable(texts[place]) for place in places])
        return vectors

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _request(self, texts: list[str]) -> NDArray[np.float32]:
        length = {"dimensions": self.dimensions} if self._model.shortened else {}
        body = {"model": self._model.model, "input": texts, "encoding_format": "float", **length}
        try:
            async with asyncio.timeout(TOTAL_SECONDS):
                response = await self._client.post("embeddings", json=body)
        except AddressRefused as error:
            raise ProviderRefused(f"{self.name}: {error}") from error
        except TimeoutError as error:
            raise ProviderUnavailable(f"{self.name}: no complete answer within {TOTAL_SECONDS:g} s") from error
        except httpx.RequestError as error:
            log.warning("%s: %s %s", self.name, type(error).__name__, error)
            raise ProviderUnavailable(f"{self.name}: {type(error).__name__}") from error
        if not response.is_success:
            raise _failure(self.name, response)
        return _vectors(self._model, response, count=len(texts))


def _sendable(text: str) -> str:
    """Lone surrogates cannot be sent and become question marks; text beyond what a model reads is cut off."""
    return text[:READ_BYTES].encode("utf-8", "replace")[:READ_BYTES].decode("utf-8", "ignore")


def _failure(name: str, response: httpx.Response) -> ProviderError:
    status = response.status_code
    # The words of the endpoint are for the operator: a caller sees none of what an internal server answers.
    log.warning("%s: HTTP %s %s", name, status, response.text[:300])
    detail = f"{name}: HTTP {status}"
    if status == 402 or (status == 429 and is_out_of_credit(response.text)):
        return ProviderRefused(detail, reason="billing")
    if status in (401, 403):
        return ProviderRefused(detail, reason="auth")
    if status in (408, 429) or status >= 500:
        return ProviderUnavailable(detail)
    return ProviderError(detail)


def _vectors(model: EmbeddingModel, response: httpx.Response, *, count: int) -> NDArray[np.float32]:
    try:
        rows = sorted(response.json()["data"], key=lambda row: int(row["index"]))
        if [row["index"] for row in rows] != list(range(len(rows))):
            raise ValueError("indexes are missing or repeated")
        vectors = np.array([row["embedding"] for row in rows], np.float64)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise ProviderError(
            f"{model.name}: the answer is not a list of embeddings ({type(error).__name__})."
        ) from error
    if vectors.shape != (count, model.dimensions):
        raise ProviderError(f"{model.name}: expected {(count, model.dimensions)} numbers, got {vectors.shape}.")
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    if not (np.isfinite(largest).all() and largest.all()):
        raise ProviderError(f"{model.name}: a vector is zero or has numbers that are not finite.")
    vectors /= largest  # first, so that squares of huge numbers do not overflow
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)
