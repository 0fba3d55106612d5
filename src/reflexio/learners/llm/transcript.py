"""A window as a model reads it: numbered turns behind a fence, long texts cut, tools in one line, pictures apart."""

from collections.abc import Iterator
from dataclasses import dataclass

from reflexio.learners.llm.fence import LONGEST, Block, compact, cut, fenced
from reflexio.learners.llm.pictures import picture
from reflexio.models.learned import ToolCall, Turn, Window

# Windows of very many turns share this, so that they fit any model; turns of usual windows never notice.
MOST_CHARACTERS = 200_000
SHORTEST_CUT = 200
LONGEST_TOOL = 400
MOST_TOOLS = 12
MOST_PICTURES = 8


@dataclass(frozen=True)
class Transcript:
    """The text, its pictures, and the turns by the numbers that they have in the text."""

    text: str
    images: tuple[str, ...]
    turns: dict[int, Turn]


def transcript(window: Window) -> Transcript:
    turns = dict(enumerate(window.turns, start=1))
    pictures = _pictures(turns)
    longest = max(SHORTEST_CUT, min(LONGEST, MOST_CHARACTERS // max(1, len(turns))))
    blocks = [block for number, turn in turns.items() for block in _turn(number, turn, list(pictures), longest)]
    return Transcript(fenced(blocks), tuple(pictures.values()), turns)


def _pictures(turns: dict[int, Turn]) -> dict[int, str]:
    """The newest pictures of new turns, by the number of their turn."""
    found = {number: image for number, turn in turns.items() if turn.is_new and (image := picture(turn.image))}
    return dict(list(found.items())[-MOST_PICTURES:])


def _turn(number: int, turn: Turn, pictures: list[int], longest: int) -> Iterator[Block]:
    context = "" if turn.is_new else ", context"
    yield Block(f"turn {number}, {turn.role}{context}{_shown(number, turn, pictures)}", cut(turn.content, longest))
    if turn.action:
        yield Block(f"turn {number}, action of the user", cut(turn.action, longest))
    for call in turn.tools[:MOST_TOOLS]:
        yield _tool(number, call, longest)
    if len(turn.tools) > MOST_TOOLS:
        yield Block(f"turn {number}, {len(turn.tools) - MOST_TOOLS} more tool calls left out")
    if turn.expert_content:
        yield Block(f"turn {number}, expert answer", cut(turn.expert_content, longest))


def _shown(number: int, turn: Turn, pictures: list[int]) -> str:
    if not turn.image:
        return ""
    return f", picture {pictures.index(number) + 1} attached" if number in pictures else ", with a picture not shown"


def _tool(number: int, call: ToolCall, longest: int) -> Block:
    words = [call.name, f"({call.status})" if call.status else "", compact(call.data) if call.data else ""]
    return Block(f"turn {number}, tool call", cut(" ".join(filter(None, words)), min(LONGEST_TOOL, longest)))
