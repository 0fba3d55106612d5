"""Structured answers from a language model."""

from dataclasses import dataclass, field
from math import ceil
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel

from reflexio.models.extraction import Spend

A = TypeVar("A", bound=BaseModel)

CHARACTERS_PER_TOKEN = 4


def estimate(text: str) -> int:
    """Approximate number of tokens in a text, for providers that report no count."""
    return ceil(len(text) / CHARACTERS_PER_TOKEN)


@dataclass(frozen=True)
class Messages:
    """A prompt: first the constant instructions (so that provider caches hit), then the case at hand, then images.

    An image is an http(s) URL or a `data:image/…;base64,` URI.
    """

    instructions: str
    case: str
    images: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reply(Generic[A]):
    """A validated answer and what it cost."""

    answer: A
    spend: Spend = field(default_factory=Spend)


class TrialAnswer(BaseModel):
    word: str


TRIAL = Messages("Answer the question with one word.", "Which word is the opposite of 'no'?")
"""The tiny question that shows whether a model answers at all, and how."""


class Chat(Protocol):
    """One model. `ask` returns an instance of `schema`; an answer that does not validate is repaired once.

    Raises `ProviderRefused` (401, 402, 403, exhausted quota, no such model), `ProviderUnavailable` (429, 5xx,
    timeouts) and `UnreadableAnswer` when even the repaired answer does not validate, when the model declines
    (`Declined`), when the text is too long for it (`ContextTooLong`), and when the provider rejects the request itself.
    Errors carry the spend so far in `.spend`.
    """

    @property
    def name(self) -> str: ...

    async def ask(self, messages: Messages, schema: type[A]) -> Reply[A]: ...

    async def aclose(self) -> None: ...
