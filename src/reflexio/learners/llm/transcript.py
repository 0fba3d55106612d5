"""A window as a model reads it: numbered turns between delimiters, long texts cut, tools in one line, images apart."""

import base64
import binascii
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from reflexio.learners.llm.delimiters import LONGEST, Block, cut, delimit
from reflexio.models.extraction import RecordedToolCall, Turn, Window

# Windows of very many turns share this, so that they fit any model; usual windows are not affected.
MOST_CHARACTERS = 200_000
SHORTEST_CUT = 200
LONGEST_TOOL = 400
MOST_TOOLS = 12
MOST_IMAGES = 8

_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_DATA_URI = re.compile(r"data:image/[\w.+-]+;base64,", re.IGNORECASE)


@dataclass(frozen=True)
class Transcript:
    """The text, its images, and the turns by the numbers that they have in the text."""

    text: str
    images: tuple[str, ...]
    turns: dict[int, Turn]


def transcript(window: Window) -> Transcript:
    turns = dict(enumerate(window.turns, start=1))
    images = {number: url for number, turn in turns.items() if turn.is_new and (url := image_url(turn.image))}
    newest = dict(list(images.items())[-MOST_IMAGES:])
    longest = max(SHORTEST_CUT, min(LONGEST, MOST_CHARACTERS // max(1, len(turns))))
    blocks = [block for number, turn in turns.items() for block in _turn_blocks(number, turn, list(newest), longest)]
    return Transcript(delimit(blocks), tuple(newest.values()), turns)


def image_url(image: str) -> str:
    """An http(s) URL or a data URI of the image; empty when it is of no format that models read.

    Callers send URLs, data URIs and bare base64. The format is recognised by the bytes.

    >>> image_url("iVBORw0KGgo=")
    'data:image/png;base64,iVBORw0KGgo='
    >>> image_url("a cat")
    ''
    """
    if image.startswith(("http://", "https://")):
        return image
    encoded = "".join(_DATA_URI.sub("", image, count=1).split())
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return ""
    media_type = next((name for signature, name in _SIGNATURES.items() if content.startswith(signature)), "")
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        media_type = "image/webp"
    return f"data:{media_type};base64,{encoded}" if media_type else ""


def compact_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _turn_blocks(number: int, turn: Turn, with_image: list[int], longest: int) -> Iterator[Block]:
    title = f"turn {number}, {turn.role}{_date(turn.at)}" + ("" if turn.is_new else ", context")
    if number in with_image:
        title += f", picture {with_image.index(number) + 1} attached"
    elif turn.image:
        title += ", with a picture not shown"
    yield Block(title, cut(turn.content, longest))
    if turn.action:
        yield Block(f"turn {number}, action of the user", cut(turn.action, longest))
    for call in turn.tools[:MOST_TOOLS]:
        yield Block(f"turn {number}, tool call", cut(_tool_line(call), min(LONGEST_TOOL, longest)))
    if len(turn.tools) > MOST_TOOLS:
        yield Block(f"turn {number}, {len(turn.tools) - MOST_TOOLS} more tool calls left out")
    if turn.expert_content:
        yield Block(f"turn {number}, expert answer", cut(turn.expert_content, longest))


def _date(at: int) -> str:
    """With the day of the week, so that "next Friday" can be resolved."""
    return f", {datetime.fromtimestamp(at, UTC):%a %Y-%m-%d %H:%M}" if at else ""


def _tool_line(call: RecordedToolCall) -> str:
    parts = [call.name, f"({call.status})" if call.status else "", compact_json(call.data) if call.data else ""]
    return " ".join(filter(None, parts))
