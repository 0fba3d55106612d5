"""A request to a model: who it is for, what the user asks, where the context goes, and what was said since the last.

Chat completions and responses are read into one list of entries. Nothing here fails on what it does not know: the
model server decides what a valid request is.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Json = dict[str, Any]
TEXT_PARTS = ("text", "input_text", "output_text", "refusal")
MARKS = {"image_url": "[image]", "input_image": "[image]", "input_audio": "[audio]", "file": "[file]"}
"""What stands in a published turn for a part that is not text."""
OTHER_MARK = "[attachment]"


class Protocol(StrEnum):
    """The two ways to ask a model that are understood."""

    CHAT = "chat/completions"
    RESPONSES = "responses"


@dataclass(frozen=True)
class ModelToolCall:
    """A tool that a model wants called, with the arguments as it wrote them."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class PromptEntry:
    """A message, a call of a tool, or its result. `text` has a mark for each part that is no text, `words` has none."""

    role: str
    text: str = ""
    words: str = ""
    calls: tuple[ModelToolCall, ...] = ()
    result_of: str = ""

    @property
    def is_answer(self) -> bool:
        return self.role == "assistant"


@dataclass(frozen=True)
class NamedConversation:
    """Whose conversation it is. Empty is unknown."""

    user_id: str = ""
    session_id: str = ""
    agent_version: str = ""


@dataclass(frozen=True)
class Prompt:
    """A request whose body was read."""

    protocol: Protocol
    document: Json
    entries: tuple[PromptEntry, ...] = field(default=())

    @classmethod
    def read(cls, protocol: Protocol, body: bytes) -> "Prompt | None":
        """The request, or None when it is not one that is understood."""
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            return None
        if not isinstance(document, dict):
            return None
        return cls(protocol, document, tuple(map(_entry, _messages(protocol, document))))

    @property
    def question(self) -> str:
        """The words that the user wrote last; empty for a picture alone."""
        place = self._last_user()
        return "" if place is None else self.entries[place].words

    @property
    def has_user(self) -> bool:
        """Whether there is a message of a user, in front of which a context could stand."""
        return self._last_user() is not None

    def conversation(self, named: NamedConversation) -> NamedConversation:
        """What the headers name, completed by `metadata`, `user` and `safety_identifier`."""
        metadata = self.document.get("metadata")
        given = metadata if isinstance(metadata, Mapping) else {}
        fallback = _name(self.document.get("user")) or _name(self.document.get("safety_identifier"))
        return NamedConversation(
            user_id=named.user_id or _name(given.get("user_id")) or fallback,
            session_id=named.session_id or _name(given.get("session_id")),
            agent_version=named.agent_version or _name(given.get("agent_version")),
        )

    def with_context(self, context: str) -> bytes | None:
        """The body with the context in front of the user's last words; None when there are none, or it cannot be."""
        place = self._last_user()
        if place is None:
            return None
        if self.protocol is Protocol.RESPONSES and isinstance(self.document.get("input"), str):
            changed = {**self.document, "input": f"{context}\n\n{self.document['input']}"}
        else:
            key = "messages" if self.protocol is Protocol.CHAT else "input"
            messages = list(self.document[key])
            if not isinstance(messages[place].get("content"), str | list):
                return None
            kind = "text" if self.protocol is Protocol.CHAT else "input_text"
            messages[place] = {**messages[place], "content": _prefixed(messages[place].get("content"), context, kind)}
            changed = {**self.document, key: messages}
        try:
            return json.dumps(changed, separators=(",", ":"), allow_nan=False).encode()
        except ValueError:  # a number without bounds, which JSON does not have
            return None

    def unpublished(self) -> tuple[PromptEntry, ...]:
        """What was said since the model's last answer: everything before was in an earlier call."""
        end = len(self.entries)
        while end and self.entries[end - 1].is_answer and not self.entries[end - 1].calls:
            end -= 1  # the beginning of the answer, which the model continues
        answers = [place for place in range(end) if self.entries[place].is_answer]
        return self.entries[answers[-1] + 1 if answers else 0 : end]

    def call_of(self, result: PromptEntry) -> ModelToolCall | None:
        """The call whose result an entry is."""
        calls = (call for entry in self.entries for call in entry.calls)
        return next((call for call in calls if call.id == result.result_of), None)

    def _last_user(self) -> int | None:
        places = [place for place, entry in enumerate(self.entries) if entry.role == "user"]
        return places[-1] if places else None


def _messages(protocol: Protocol, document: Json) -> Sequence[Any]:
    messages = document.get("messages" if protocol is Protocol.CHAT else "input")
    if protocol is Protocol.RESPONSES and isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    return messages if isinstance(messages, list) else []


def _entry(message: Any) -> PromptEntry:
    if not isinstance(message, dict):
        return PromptEntry("unknown")
    match message.get("type"):
        case "function_call" | "custom_tool_call":
            arguments = message.get("arguments", message.get("input"))
            call = ModelToolCall(_text(message.get("call_id")), _text(message.get("name")), _text(arguments))
            return PromptEntry("assistant", calls=(call,))
        case "function_call_output" | "custom_tool_call_output":
            return PromptEntry("tool", content_text(message.get("output")), result_of=_text(message.get("call_id")))
    role = _text(message.get("role")) or "unknown"
    return PromptEntry(
        "tool" if role == "function" else role,
        content_text(message.get("content")),
        content_text(message.get("content"), with_marks=False),
        tool_calls(message.get("tool_calls")),
        _text(message.get("tool_call_id")),
    )


def tool_calls(calls: Any) -> tuple[ModelToolCall, ...]:
    """The calls in a message of chat completions."""
    found = []
    for call in calls if isinstance(calls, list) else ():
        if not isinstance(call, dict):
            continue
        function = call.get("function") or call.get("custom") or {}
        if isinstance(function, dict):
            arguments = _text(function.get("arguments", function.get("input")))
            found.append(ModelToolCall(_text(call.get("id")), _text(function.get("name")), arguments))
    return tuple(found)


def content_text(content: Any, *, with_marks: bool = True) -> str:
    """The words of a content, with a mark for each part that is no text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(filter(None, (_part_text(part, with_marks) for part in content)))


def _part_text(part: Any, with_marks: bool) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    kind = part.get("type")
    if kind in TEXT_PARTS:
        return _text(part.get("text")) or _text(part.get("refusal"))
    return MARKS.get(str(kind), OTHER_MARK) if with_marks else ""


def _prefixed(content: Any, context: str, kind: str) -> Any:
    if isinstance(content, list):
        return [{"type": kind, "text": context}, *content]
    return f"{context}\n\n{content}" if content else context


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


LONGEST_NAME = 255


def _name(value: Any) -> str:
    """A name that can be stored, or nothing."""
    text = _text(value).strip()
    return text if len(text) <= LONGEST_NAME and "\0" not in text else ""
