"""Stores the vectors of the local learner's prototypes, so that no process has to compute them.

Run it after a change of `learners/local/statements.toml`; a test compares both.
"""

import asyncio

import numpy as np

from reflexio.learners.local.statements import CLASSES, VECTORS, digest_of_prototypes, prototypes
from reflexio.providers.embedding.local import LocalEmbedder


async def main() -> None:
    embedder = LocalEmbedder()
    vectors = {name: (await embedder.embed(prototypes(name))).astype(np.float16) for name in CLASSES}
    np.savez_compressed(VECTORS, embedder=embedder.name, digest=digest_of_prototypes(), **vectors)
    await embedder.aclose()
    print(f"{sum(map(len, vectors.values()))} vectors, {VECTORS.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    asyncio.run(main())
