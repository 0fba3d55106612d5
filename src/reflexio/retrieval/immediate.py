"""Vectors for what is about to be stored, so that the next search finds it by meaning.

A caller waits a bounded time for them. Whatever has no vector by then is stored without one and goes to the embedding
backlog: a slow or failing embedder delays nobody's write for long.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from reflexio.errors import ProviderError
from reflexio.ports.embedding import Embedder
from reflexio.ports.storage import NO_VECTORS, TextVectors

log = logging.getLogger("reflexio.embed")

MOST_TEXTS = 64
"""Texts that one write waits for; more of them are an import and are embedded in the background."""
WAIT_SECONDS = 2.0
PAUSE_SECONDS = 10.0
"""How long after a failure writes do not wait at all."""


EmbedTexts = Callable[[Sequence[str]], Awaitable[TextVectors]]


async def embed_later(texts: Sequence[str]) -> TextVectors:
    """Leaves the texts to the embedding backlog."""
    return NO_VECTORS


class ImmediateEmbedder:
    """The embedder in use, with a bound on the time that a write may wait for it."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._paused_until = 0.0

    async def embed(self, texts: Sequence[str]) -> TextVectors:
        """The vectors of these texts; none of them for an import, or when the embedder does not answer in time."""
        wanted = list(dict.fromkeys(text for text in texts if text.strip()))
        clock = asyncio.get_running_loop()
        if not wanted or len(wanted) > MOST_TEXTS or clock.time() < self._paused_until:
            return NO_VECTORS
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                vectors = await self._embedder.embed(wanted)
        except (ProviderError, TimeoutError) as error:
            reason = str(error) or f"the embedder did not answer within {WAIT_SECONDS:g} s"
            log.warning("%d text(s) are stored without a vector and embedded later: %s", len(wanted), reason)
            self._paused_until = clock.time() + PAUSE_SECONDS
            return NO_VECTORS
        blobs = (vector.astype("float16").tobytes() for vector in vectors)
        return TextVectors(self._embedder.name, dict(zip(wanted, blobs, strict=True)))
