"""Keeping text of others apart from ours: a mark that their text does not contain begins every line of ours."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

LONGEST = 2_000
HEAD_SHARE = 0.7


@dataclass(frozen=True)
class Block:
    """A line of ours, and text of others under it."""

    title: str
    text: str = ""


def fenced(blocks: Sequence[Block]) -> str:
    """One text. The mark depends on the blocks alone, so that the same question is asked in the same words.

    >>> fenced([Block("turn 1, user", "Hello")]).splitlines()[-2:]
    ['Hello', '#b3852254 end']
    """
    mark = _mark(blocks)
    lines = [f"The fence mark is {mark}."]
    for block in blocks:
        lines += [f"{mark} {block.title}", *([block.text] if block.text else [])]
    return "\n".join([*lines, f"{mark} end"])


def _mark(blocks: Sequence[Block]) -> str:
    everything = "\n".join(f"{block.title}\n{block.text}" for block in blocks)
    seed = everything.encode("utf-8", "replace")
    while True:
        seed = blake2b(seed, digest_size=4).digest()
        if (mark := f"#{seed.hex()}") not in everything:
            return mark


def cut(text: str, most: int = LONGEST) -> str:
    """A long text without its middle: beginnings say what it is about, ends what came of it."""
    if len(text) <= most:
        return text
    head = int(most * HEAD_SHARE)
    return f"{text[:head]} […{len(text) - most} characters left out…] {text[head - most :]}"


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
