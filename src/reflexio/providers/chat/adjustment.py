"""What is sent differently after a server has rejected a question: learned from its words, and kept.

Without its images, in another way to a structured answer, with a lower or differently named limit, as a stream, with
the instructions in the message of the user.
"""

import re
from dataclasses import replace
from typing import Literal

from pydantic_ai.settings import ModelSettings

from reflexio.ports.chat import Messages, estimate
from reflexio.providers.chat.failures import (
    ABOUT_EFFORT,
    ABOUT_LIMIT,
    ABOUT_STREAM,
    ABOUT_STREAM_OPTIONS,
    ABOUT_SYSTEM,
    is_about,
    is_about_account,
    is_about_images,
    is_about_structure,
    is_declined,
    is_rejected,
    is_too_long,
    words_of,
)
from reflexio.providers.chat.resolve import PROVIDERS, ModelAddress, StructuredOutput
from reflexio.providers.chat.structure import WAYS

LEAST_OUTPUT_TOKENS = 256
NO_IMAGES = "\n\n(The pictures could not be handed over.)"
OTHER_LIMITS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
SHARED_ROOM = re.compile(r"context|n_ctx|`inputs` tokens", re.IGNORECASE)
UNKNOWN_PARAMETER = re.compile(
    r"unsupported|not supported|unrecognized|unknown|not permitted|unexpected", re.IGNORECASE
)


class RequestHabits:
    """How one server wants to be asked."""

    def __init__(self, address: ModelAddress) -> None:
        options = address.options
        self.way: StructuredOutput = options.structured_output or "tools"
        self.is_proven = address.is_official
        """Whether the model is known to answer in this way to a structure."""
        self._is_fixed = options.structured_output is not None
        self._is_openai_protocol = address.protocol == "openai"
        is_openai = address.base_url == PROVIDERS["openai"].base_url
        self._limit_name = "max_completion_tokens" if is_openai else "max_tokens"
        self._output_tokens = options.max_output_tokens
        self._streams = False
        self._has_stream_options = True
        self._has_system_role = True
        self._has_effort = True

    def settings(self, base: ModelSettings, effort: Literal["low"] | None) -> ModelSettings:
        """The settings of a question; agents, which share the session, use the base alone."""
        settings = ModelSettings(**base)
        if effort and self._has_effort:
            settings["thinking"] = effort
        if not self._is_openai_protocol:
            settings["max_tokens"] = self._output_tokens
            return settings
        body: dict[str, object] = {self._limit_name: self._output_tokens} if self._limit_name else {}
        if self._streams:
            body |= {"stream": True}
        if self._streams and self._has_stream_options:
            body |= {"stream_options": {"include_usage": True}}
        settings["extra_body"] = body
        return settings

    def placed(self, messages: Messages) -> Messages:
        """The prompt with its instructions where the model may read them: some know no role of the system."""
        if self._has_system_role or not messages.instructions:
            return messages
        return replace(messages, instructions="", case=f"{messages.instructions}\n\n{messages.case}")

    def seek_way(self, tried: StructuredOutput) -> bool:
        """Goes to the way after the one that was tried; False when there is none. Other calls may be there already."""
        place = WAYS.index(tried) + 1
        if self._is_fixed or place == len(WAYS):
            return False
        self.way = WAYS[place] if self.way == tried else self.way
        return True

    def adjusted(self, messages: Messages, tried: StructuredOutput, error: Exception) -> Messages | None:
        """The prompt to try again with, after a change of what is sent; None when there is nothing to change."""
        if is_declined(error):
            return None
        if is_about(ABOUT_STREAM, error) and not self._streams and self._is_openai_protocol:
            self._streams = True
            return messages
        if is_about(ABOUT_STREAM_OPTIONS, error) and self._streams and self._has_stream_options:
            self._has_stream_options = False
            return messages
        if is_about(ABOUT_SYSTEM, error) and self._has_system_role:
            self._has_system_role = False
            return messages
        if is_about(ABOUT_EFFORT, error) and self._has_effort:
            self._has_effort = False
            return messages
        if is_too_long(error) or is_about(ABOUT_LIMIT, error):
            return messages if self._lower_limit(words_of(error), messages) else None
        if messages.images and is_about_images(error) and not is_about_structure(error):
            # A picture that cannot be fetched or read must not cost the words.
            return replace(messages, case=messages.case + NO_IMAGES, images=())
        is_doubtful = is_rejected(error) and not self.is_proven and not is_about_account(error)
        return messages if (is_about_structure(error) or is_doubtful) and self.seek_way(tried) else None

    def _lower_limit(self, words: str, messages: Messages) -> bool:
        """Whether a smaller limit of the output, or one of another name, is left to try."""
        if self._is_openai_protocol and self._limit_name in words and UNKNOWN_PARAMETER.search(words):
            other = OTHER_LIMITS.get(self._limit_name, "")
            self._limit_name = other if other in words or self._limit_name == "max_tokens" else ""
            return True
        said = words.removeprefix("HTTP ").partition(" ")[2]  # without the status
        numbers = [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\d", said)]
        room = max((number for number in numbers if number < self._output_tokens), default=0)
        if room < LEAST_OUTPUT_TOKENS:
            return False
        if SHARED_ROOM.search(words):  # this is the room for text and answer together
            left = room - estimate(messages.instructions + messages.case)
            room = min(room // 4, left)
        if room < LEAST_OUTPUT_TOKENS:
            return False
        self._output_tokens = room
        return True
