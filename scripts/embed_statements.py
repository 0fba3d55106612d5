"""Stores the vectors of the local learner's prototypes, so that no process has to compute them.

Run it after a change of `learners/local/statements.toml`; a test compares both.
"""

import asyncio
from typing import Any

import numpy as np

from reflexio.learners.local.statements import CLASSES, VECTORS, digest_of_prototypes, prototypes
from reflexio.providers.embedding.local import LocalEmbedder


async def main() -> None:
    embedder = LocalEmbedder()
    vectors: dict[str, Any] = {name: (await embedder.embed(prototypes(name))).astype(np.float16) for name in CLASSES}
    arrays = {"embedder": np.array(embedder.name), "digest": np.array(digest_of_prototypes()), **vectors}
    np.savez_compressed(VECTORS, **arrays)
    await embedder.aclose()
    print(f"{sum(map(len, vectors.values()))} vectors, {VECTORS.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    asyncio.run(main())
