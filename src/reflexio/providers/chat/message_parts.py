"""The parts of a message in the forms that servers give them: texts, choices, arguments of calls."""

import json
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
WRAPPINGS = ("data", "result", "response", "body")


def messages(answer: Json) -> Iterator[tuple[Json, Json]]:
    """Each choice with its message. Some servers answer as Ollama or Anthropic do, or wrap the whole once more."""
    choices = as_list(answer.get("choices"))
    wrapped = next((inner for name in WRAPPINGS if isinstance(inner := answer.get(name), dict)), None)
    if not choices and wrapped and wrapped.get("choices"):
        choices = as_list(wrapped["choices"])
    if "choices" not in answer and isinstance(answer.get("message"), dict):
        choices = [answer]
    if "choices" not in answer and "role" in answer:
        choices = [{"message": answer, "finish_reason": answer.get("stop_reason")}]
    for choice in choices:
        if not isinstance(choice, dict):
            continue
        message = choice.get("message") or choice.get("delta")
        if isinstance(message, str) or (message is None and isinstance(choice.get("text"), str)):
            message = {"content": message or choice["text"]}
        if isinstance(message, dict):
            yield choice, message
        elif choice.get("error"):
            yield choice, {}


def arguments_of(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def text_of(value: Any) -> str:
    """A text, the texts of its parts, or the JSON text of an answer that the server has read already."""
    return value if isinstance(value, str) else "".join(map(_text_of_part, as_list(value)))


def _text_of_part(part: Any) -> str:
    match part:
        case str(text) | {"text": str(text)} | {"text": {"value": str(text)}}:
            return text
        case dict() if part and "type" not in part and "text" not in part:
            return json.dumps(part)
        case _:
            return ""


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
