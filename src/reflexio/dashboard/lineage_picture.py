"""The lineage of a learning as a picture: quoted words, conversations, user playbooks, agent playbook, successors.

Boxes stand in columns; everything is placed here, because SVG neither wraps text nor lays out. The page says the same
in words below it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from unicodedata import east_asian_width

from markupsafe import Markup

from reflexio.learning.lineage import Lineage, LineageSource
from reflexio.models.learning import Kind, Learning, PlaybookStatus, Status

COLUMNS = {"words": (0, 262), "talk": (306, 150), "user": (500, 232), "agent": (776, 262)}
"""Left edge and width of each column."""
WIDTH, ROW, GAP, TOP = 1040, 78, 16, 30
HEADINGS = {"words": "What was said", "talk": "Conversation", "user": "Learned", "agent": "Agent playbook"}
LETTER, LINE, PADDING = 7.2, 17, 12
"""Width of a letter, on average, and height of a line, in the text size of the picture."""
KINDS = {Kind.PROFILE: "Profile", Kind.USER_PLAYBOOK: "User playbook", Kind.AGENT_PLAYBOOK: "Agent playbook"}


@dataclass(frozen=True)
class Box:
    """One box: its column and top edge, a small line above, its words, where it leads, and how it looks."""

    column: str
    top: float
    label: str
    words: str
    path: str = ""
    look: str = ""
    height: int = ROW

    @property
    def left(self) -> int:
        return COLUMNS[self.column][0]

    @property
    def right(self) -> int:
        return self.left + COLUMNS[self.column][1]

    @property
    def middle(self) -> float:
        return self.top + self.height / 2


@dataclass(frozen=True)
class Arrow:
    start: Box
    end: Box
    look: str = ""


def draw_lineage(lineage: Lineage) -> Markup:
    """The picture, or nothing when there is nothing to draw but the learning itself."""
    boxes, arrows = _place(lineage)
    if len(boxes) < 2:
        return Markup("")
    height = max(box.top + box.height for box in boxes) + 4
    head = Markup(
        '<svg class="lineage" viewBox="0 0 {} {}" width="{}" height="{}" role="group" '
        'aria-label="Lineage: what was said, and what was made of it">'
    ).format(WIDTH, height, WIDTH, height)
    used = {box.column for box in boxes}
    parts = [_heading(column) for column in COLUMNS if column in used]
    parts += [_arrow(arrow) for arrow in arrows]
    parts += [_box(box) for box in boxes]
    return head + Markup("").join(parts) + Markup("</svg>")


def _place(lineage: Lineage) -> tuple[list[Box], list[Arrow]]:
    subject = lineage.learning
    column = "agent" if subject.kind is Kind.AGENT_PLAYBOOK else "user"
    rows = [TOP + number * (ROW + GAP) for number in range(len(lineage.sources))]
    others = _others(lineage)
    # The learning stands in the middle of its sources, and what it replaced or was replaced by below it.
    middle = (rows[0] + rows[-1] + ROW) / 2 if rows else TOP + ROW / 2
    top = max(float(TOP), middle - ROW / 2 - len(others) * (ROW + GAP) / 2)
    own = Box(column, top, _label(subject), subject.content, "", f"own {_look(subject)}")
    boxes, arrows = [own], list[Arrow]()
    for source, row in zip(lineage.sources, rows, strict=True):
        chain = list(_chain(source, row, subject))
        boxes += chain
        arrows += [Arrow(start, end) for start, end in zip(chain, [*chain[1:], own], strict=True)]
    for number, (words, learning) in enumerate(others, 1):
        place, path = top + number * (ROW + GAP), f"/learnings/{learning.id}"
        box = Box(column, place, words, learning.content, path, f"old {_look(learning)}")
        arrows.append(Arrow(boxes[-1] if number > 1 else own, box, "old"))
        boxes.append(box)
    for number, made in enumerate(lineage.made):
        box = Box("agent", top + number * (ROW + GAP), _label(made), made.content, f"/learnings/{made.id}", _look(made))
        boxes.append(box)
        arrows.append(Arrow(own, box))
    return boxes, arrows


def _others(lineage: Lineage) -> list[tuple[str, Learning]]:
    replaced = [("Replaced by this", learning) for learning in lineage.replaced]
    return [*(("Replaced this", learning) for learning in lineage.successors), *replaced]


def _chain(source: LineageSource, top: float, subject: Learning) -> Iterator[Box]:
    """The boxes of one source, from the words to the user playbook."""
    cited = source.cited[-1] if source.cited else None
    path = f"/conversations/turn/{cited.interaction_id}" if cited else ""
    quote = source.quote.replace("\n", " … ") or (cited.content if cited else "")
    yield Box("words", top, "", f"“{quote}”" if quote else "These turns are not stored any more.", path, "quote")
    kept = f"{len(source.cited)} of {source.turn_count} turns" if source.turn_count else "turns deleted"
    yield Box("talk", top, source.user_id or "a user", kept, path, "talk")
    playbook = source.playbook
    if subject.kind is Kind.AGENT_PLAYBOOK:
        if playbook is None:
            yield Box("user", top, "User playbook", "It was deleted.", "", "gone")
        else:
            yield Box("user", top, "User playbook", playbook.content, f"/learnings/{playbook.id}", _look(playbook))


def _label(learning: Learning) -> str:
    return KINDS[learning.kind]


def _look(learning: Learning) -> str:
    if learning.status is not Status.CURRENT:
        return "retired"
    return learning.review.value if learning.kind is Kind.AGENT_PLAYBOOK else PlaybookStatus.APPROVED.value


def _heading(column: str) -> Markup:
    return Markup('<text class="lineage-heading" x="{}" y="14">{}</text>').format(COLUMNS[column][0], HEADINGS[column])


def _box(box: Box) -> Markup:
    width = COLUMNS[box.column][1]
    lines = wrap(box.words, int((width - 2 * PADDING) / LETTER), 2 if box.label else 3)
    first = box.top + PADDING + 11
    parts = [
        Markup('<rect x="{}" y="{:.1f}" width="{}" height="{}" rx="10"/>').format(box.left, box.top, width, box.height)
    ]
    if box.label:
        parts.append(_text("lineage-label", box.left + PADDING, first, wrap(box.label, int(width / LETTER) - 4, 1)[0]))
        first += LINE + 1
    parts += [
        _text("lineage-words", box.left + PADDING, first + number * LINE, line) for number, line in enumerate(lines)
    ]
    # The whole text is under the pointer, and what a screen reader says.
    title = Markup("<title>{}</title>").format(f"{box.label}: {box.words}" if box.label else box.words)
    inside = title + Markup("").join(parts)
    if box.path:
        return Markup('<a class="lineage-box {}" href="{}">{}</a>').format(box.look, box.path, inside)
    return Markup('<g class="lineage-box {}">{}</g>').format(box.look, inside)


def _text(look: str, x: float, y: float, words: str) -> Markup:
    return Markup('<text class="{}" x="{}" y="{:.1f}">{}</text>').format(look, x, y, words)


def _arrow(arrow: Arrow) -> Markup:
    x, y, to_x, to_y = arrow.start.right, arrow.start.middle, arrow.end.left, arrow.end.middle
    if arrow.start.column == arrow.end.column:
        x, y, to_y = arrow.start.left + 24, arrow.start.top + arrow.start.height, arrow.end.top
        return Markup('<path class="lineage-arrow {}" d="M{} {:.1f}V{:.1f}"/>').format(arrow.look, x, y, to_y)
    bend = (to_x - x) / 2
    way = f"M{x} {y:.1f}C{x + bend:.1f} {y:.1f} {to_x - bend:.1f} {to_y:.1f} {to_x} {to_y:.1f}"
    return Markup('<path class="lineage-arrow {}" d="{}"/>').format(arrow.look, way)


def wrap(text: str, letters: int, most: int) -> list[str]:
    """At most `most` lines of about that many letters; an ellipsis ends what does not fit.

    >>> wrap("Ask the neighbours before a refund is started", 18, 2)
    ['Ask the neighbours', 'before a refund …']
    """
    lines, line = list[str](), ""
    for word in _breakable(text, letters):
        joined = f"{line}{word}" if not line else f"{line} {word}"
        if _width(joined) <= letters:
            line = joined
            continue
        lines.append(line)
        line = word
        if len(lines) == most:
            return [*lines[:-1], _shortened(lines[-1], letters)]
    return [*lines, line] if line or not lines else lines


def _breakable(text: str, letters: int) -> Iterator[str]:
    """The words; those that are longer than a line, in parts."""
    for word in text.split():
        part = ""
        for letter in word:
            if _width(part + letter) > letters:
                yield part
                part = ""
            part += letter
        yield part


def _shortened(line: str, letters: int) -> str:
    """The line with an ellipsis, without the words that leave no room for it."""
    while line and _width(f"{line} …") > letters:
        line = line.rpartition(" ")[0] if " " in line else line[:-1]
    return f"{line} …"


def _width(text: str) -> int:
    """Chinese and Japanese characters are twice as wide."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)
