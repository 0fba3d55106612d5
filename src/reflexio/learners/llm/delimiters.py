"""Keeping text of others apart from ours: a mark that their text does not contain begins every line of ours."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from reflexio.models.wording import without_hidden

LONGEST = 2_000
HEAD_SHARE = 0.7


@dataclass(frozen=True)
class Block:
    """A line of ours, and text of others under it."""

    title: str
    text: str = ""


def delimit(blocks: Sequence[Block]) -> str:
    """One text of all blocks. The mark depends on them alone: the same blocks give the same text, which caches find.

    >>> delimit([Block("turn 1, user", "Hello")]).splitlines()[-2:]
    ['Hello', '#b3852254 end']
    """
    blocks = [Block(block.title, without_hidden(block.text)) for block in blocks]
    everything = "\n".join(f"{block.title}\n{block.text}" for block in blocks)
    seed = blake2b(everything.encode("utf-8", "replace"), digest_size=4).digest()
    while (mark := f"#{seed.hex()}") in everything:
        seed = blake2b(seed, digest_size=4).digest()
    lines = [f"The fence mark is {mark}."]
    for block in blocks:
        lines += [f"{mark} {block.title}", *([block.text] if block.text else [])]
    return "\n".join([*lines, f"{mark} end"])


def cut(text: str, most: int = LONGEST) -> str:
    """A long text without its middle: its beginning says what it is about, its end what came of it."""
    if len(text) <= most:
        return text
    head = int(most * HEAD_SHARE)
    return f"{text[:head]} […{len(text) - most} characters left out…] {text[head - most :]}"
