"""The picture of a lineage: every box has its place, texts fit, and nothing of a user's text is trusted."""

import re

import pytest

from reflexio.dashboard.lineage_picture import draw_lineage, wrap
from reflexio.learning.lineage import Lineage, LineageSource
from reflexio.models.interaction import Interaction
from reflexio.models.learning import Kind, Learning, PlaybookStatus, Status

RULE = Learning(Kind.AGENT_PLAYBOOK, "Ask the neighbours first.", 9, review=PlaybookStatus.APPROVED)


def lineage(*sources: LineageSource, of: Learning = RULE, replaced: tuple[Learning, ...] = ()) -> Lineage:
    return Lineage(of, sources, len(sources), 0, replaced, (), (), (), ())


def source(number: int, quote: str = "Ask them") -> LineageSource:
    turn = Interaction(interaction_id=number, user_id="ann", request_id="r", created_at=1, content=quote)
    playbook = Learning(Kind.USER_PLAYBOOK, "Ask them first.", number, user_id="ann")
    return LineageSource("ann", "s", (turn,), 5, quote, playbook)


def test_each_source_is_a_chain_that_leads_to_the_playbook() -> None:
    picture = str(draw_lineage(lineage(source(1), source(2))))
    for path in ("/conversations/turn/1", "/conversations/turn/2", "/learnings/1", "/learnings/2"):
        assert f'href="{path}"' in picture
    assert picture.count("<path") == 6
    assert "1 of 5 turns" in picture


def test_boxes_do_not_overlap() -> None:
    old = tuple(Learning(Kind.AGENT_PLAYBOOK, "Old", 20 + n, status=Status.SUPERSEDED) for n in range(6))
    picture = str(draw_lineage(lineage(*map(source, range(1, 9)), replaced=old)))
    found = re.findall(r'<rect x="(\d+)" y="([\d.]+)" width="(\d+)" height="(\d+)"', picture)
    boxes = [tuple(map(float, box)) for box in found]
    assert len(boxes) == 8 * 3 + 1 + 6
    for place, (x, y, width, height) in enumerate(boxes):
        for x2, y2, _, height2 in boxes[place + 1 :]:
            assert x2 >= x + width or x2 + 1 <= x or y2 >= y + height or y2 + height2 <= y


def test_a_learning_without_neighbours_has_no_picture() -> None:
    assert draw_lineage(lineage()) == ""


def test_turns_and_playbooks_that_are_gone_are_said_to_be() -> None:
    picture = str(draw_lineage(lineage(LineageSource("", "", (), 0))))
    assert "not stored any" in picture
    assert "It was deleted." in picture


def test_texts_are_escaped() -> None:
    picture = str(draw_lineage(lineage(source(1, "<script>alert(1)</script>\"'><a href='javascript:x'>"))))
    assert "<script" not in picture
    assert "href='javascript" not in picture


@pytest.mark.parametrize("text", ["a" * 500, "词" * 90, "one two " * 60, "", "  \n ", "short"])
def test_texts_fit_into_their_lines(text: str) -> None:
    lines = wrap(text, 20, 3)
    assert 1 <= len(lines) <= 3
    assert all(len(line) <= 21 for line in lines)
    assert (len("".join(text.split())) <= 20) == (not lines[-1].endswith("…"))
