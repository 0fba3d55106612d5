"""The scripted twins of chat model, embedder and assistant, for tests: no network, same input, same output."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from reflexio.errors import ProviderError, UnreadableAnswer
from reflexio.models.extraction import Spend
from reflexio.models.optimisation import ChatMessage, Guidance
from reflexio.ports.chat import A, Messages, Reply, estimate

ModelAnswer = BaseModel | dict[str, Any] | str
ChatAnswer = ModelAnswer | Exception
"""What a scripted model answers: a value, JSON as data or as text, or an error."""
ChatLine = ChatAnswer | Callable[[Messages], ChatAnswer]
AssistantAnswer = str | Exception


class ScriptedChat:
    """Answers with each line of a script once, in order. A line that does not fit the schema is repaired by the next.

    `asked` holds the prompts. Tokens are estimated.

    >>> import asyncio
    >>> class Colour(BaseModel):
    ...     name: str
    >>> chat = ScriptedChat(["no idea", {"name": "blue"}])
    >>> reply = asyncio.run(chat.ask(Messages("Name a colour.", "The sky."), Colour))
    >>> reply.answer, reply.spend.calls
    (Colour(name='blue'), 2)
    """

    def __init__(self, lines: Iterable[ChatLine] = (), *, name: str = "scripted:lines") -> None:
        self.name = name
        self.asked: list[Messages] = []
        self._lines = iter(lines)

    async def ask(self, messages: Messages, schema: type[A]) -> Reply[A]:
        self.asked.append(messages)
        spend = Spend(self.name)
        try:
            answer, spend = self._next_answer(messages, spend)
            try:
                return Reply(_parse(answer, schema), spend)
            except ValidationError as error:
                repair = replace(messages, case=f"{messages.case}\n{error}")
            answer, spend = self._next_answer(repair, spend)
            return Reply(_parse(answer, schema), spend)
        except ValidationError as error:
            raise UnreadableAnswer(f"{self.name}: {error}", spend=spend) from error

    async def aclose(self) -> None:
        """Holds nothing open."""

    def _next_answer(self, messages: Messages, spent: Spend) -> tuple[ModelAnswer, Spend]:
        try:
            line = next(self._lines)
        except StopIteration:
            raise LookupError(f"The script of {self.name!r} has no line left.") from None
        answer = line(messages) if callable(line) and not isinstance(line, BaseModel) else line
        call = Spend(self.name, calls=1)
        if isinstance(answer, ProviderError):
            raise type(answer)(answer.detail, **{**answer.values, "spend": spent + call})
        if isinstance(answer, Exception):
            raise answer
        prompt = messages.instructions + messages.case
        return answer, spent + replace(call, input_tokens=estimate(prompt), output_tokens=estimate(str(answer)))


def _parse(answer: ModelAnswer, schema: type[A]) -> A:
    return schema.model_validate_json(answer) if isinstance(answer, str) else schema.model_validate(answer)


class ScriptedEmbedder:
    """A hashed bag of words: texts that share words are near each other, and no others.

    Each of `failures` is raised by one call, in order, before the embedder begins to work. `calls` holds the texts.
    """

    def __init__(
        self, *, name: str = "scripted:words", dimensions: int = 64, failures: Iterable[Exception] = ()
    ) -> None:
        self.name = name
        self.dimensions = dimensions
        self.calls: list[tuple[str, ...]] = []
        self._failures = iter(failures)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls.append(tuple(texts))
        for failure in self._failures:
            raise failure
        return np.array([self._vector(text) for text in texts], np.float32).reshape(-1, self.dimensions)

    async def aclose(self) -> None:
        """Holds nothing open."""

    def _vector(self, text: str) -> NDArray[np.float32]:
        vector = np.zeros(self.dimensions, np.float32)
        for word in re.findall(r"\w+", text.lower()):
            digest = blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            vector[int.from_bytes(digest) % self.dimensions] += 1
        if not vector.any():
            vector[0] = 1
        return vector / np.linalg.norm(vector)


class ScriptedAssistant:
    """Answers with what `reply` returns for the conversation and the playbook; an exception is raised.

    `asked` holds the conversations and playbooks.
    """

    def __init__(self, reply: Callable[[Sequence[ChatMessage], Guidance], AssistantAnswer]) -> None:
        self.asked: list[tuple[tuple[ChatMessage, ...], Guidance]] = []
        self._reply = reply

    async def answer(self, messages: Sequence[ChatMessage], guidance: Guidance) -> str:
        self.asked.append((tuple(messages), guidance))
        answer = self._reply(messages, guidance)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def aclose(self) -> None:
        """Holds nothing open."""
