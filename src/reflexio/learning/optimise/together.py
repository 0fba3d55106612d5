"""Several things side by side, of which none is left behind when another one fails."""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def together(several: Iterable[Awaitable[T]]) -> list[T]:
    """All answers, in order. When one fails, the calls at hand are finished first: they are paid for already."""
    made = await asyncio.gather(*several, return_exceptions=True)
    answers = []
    for each in made:
        if isinstance(each, BaseException):
            raise each
        answers.append(each)
    return answers
