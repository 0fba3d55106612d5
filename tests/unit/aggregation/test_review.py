"""Decisions about playbooks: what they replace, how they are taken back, and which can no longer be made."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reflexio.aggregation import review
from reflexio.aggregation.review_queue import review_list, review_queue
from reflexio.errors import Conflict, NotFound
from reflexio.models.learning import Kind, Learning, PlaybookStatus, Status
from reflexio.models.playbook import UpdateAgentPlaybookRequest
from reflexio.models.review import GetReviewQueueRequest, ReviewAgentPlaybooksRequest, ReviewResponse, UndoReviewRequest
from reflexio.ports.clock import SystemClock
from reflexio.ports.storage import Store
from reflexio.providers.scripted import ScriptedEmbedder
from reflexio.retrieval.immediate import ImmediateEmbedder
from reflexio.storage.sqlite import open_sqlite

CLOCK = SystemClock()
PENDING, APPROVED, REJECTED = PlaybookStatus.PENDING, PlaybookStatus.APPROVED, PlaybookStatus.REJECTED


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    database = open_sqlite(tmp_path / "reflexio.db")
    yield database.of("org")
    await database.close()


async def add(store: Store, content: str, decision: PlaybookStatus = PENDING, *replaces: int, **more: Any) -> int:
    row = Learning(Kind.AGENT_PLAYBOOK, content, review=decision, details={"replaces": list(replaces)})
    (number,) = await store.write(lambda tx: tx.learnings.add([replace(row, **more)]))
    return number


async def row(store: Store, number: int) -> Learning:
    return (await store.read(lambda tx: tx.learnings.many([number])))[number]


async def decide(store: Store, decision: PlaybookStatus, *numbers: int) -> ReviewResponse:
    asked = ReviewAgentPlaybooksRequest(agent_playbook_ids=list(numbers), playbook_status=decision, reviewer="eve")
    return await review.decide_many(store, CLOCK, asked)


async def undo(store: Store, *numbers: int) -> ReviewResponse:
    return await review.undo(store, CLOCK, UndoReviewRequest(agent_playbook_ids=list(numbers)))


async def test_approving_a_successor_retires_what_it_replaces_and_undo_restores_it(store: Store) -> None:
    old = await add(store, "Old", APPROVED)
    new = await add(store, "New", PENDING, old)
    assert (await decide(store, APPROVED, new)).retired_ids == [old]
    gone = await row(store, old)
    assert (gone.status, gone.review, gone.details["superseded_by"]) == (Status.SUPERSEDED, APPROVED, str(new))
    assert (await undo(store, new)).restored_ids == [old]
    back = await row(store, old)
    assert (back.status, back.review, "superseded_by" in back.details) == (Status.CURRENT, APPROVED, False)
    assert (await row(store, new)).review is PENDING


async def test_rejecting_a_successor_leaves_what_stands(store: Store) -> None:
    old = await add(store, "Old", APPROVED)
    new = await add(store, "New", PENDING, old)
    assert (await decide(store, REJECTED, new)).retired_ids == []
    assert (await row(store, old)).status is Status.CURRENT


async def test_each_undo_goes_back_one_decision(store: Store) -> None:
    number = await add(store, "One")
    await decide(store, REJECTED, number)
    await decide(store, APPROVED, number)
    await undo(store, number)
    assert (await row(store, number)).review is REJECTED
    await decide(store, PENDING, number)
    await undo(store, number)
    await undo(store, number)
    assert (await row(store, number)).review is PENDING
    with pytest.raises(Conflict, match="no decision"):
        await undo(store, number)


async def test_undo_takes_back_the_edit_that_came_with_the_decision_and_no_other(store: Store) -> None:
    number = await add(store, "Vague", trigger="now")

    async def edit(**changes: Any) -> None:
        await review.edit(store, CLOCK, UpdateAgentPlaybookRequest(agent_playbook_id=number, **changes))

    await edit(trigger="then")
    await edit(content="Exact", playbook_status=APPROVED)
    await undo(store, number)
    found = await row(store, number)
    assert (found.content, found.trigger, found.review) == ("Vague", "then", PENDING)


async def test_what_was_replaced_cannot_be_decided_about(store: Store) -> None:
    old = await add(store, "Old", APPROVED)
    new = await add(store, "New", PENDING, old)
    await decide(store, APPROVED, new)
    with pytest.raises(Conflict, match=f"replaced by {new}"):
        await decide(store, REJECTED, old)


async def test_one_mistake_in_a_list_changes_nothing(store: Store) -> None:
    one = await add(store, "One")
    with pytest.raises(NotFound):
        await decide(store, APPROVED, one, 999)
    assert (await row(store, one)).review is PENDING


async def test_the_queue_shows_the_lines_that_change(store: Store) -> None:
    old = await add(store, "Ask.", APPROVED, trigger="A parcel is missing")
    new = await add(store, "Ask twice.", PENDING, old, trigger="A parcel is missing")
    found = await review_queue(store, "m", GetReviewQueueRequest())
    (item,) = found.items
    assert (found.pending_count, item.agent_playbook.agent_playbook_id) == (1, new)
    assert item.difference == "- content: Ask.\n+ content: Ask twice."
    assert [each.content for each in item.replaces] == ["Ask."]


async def test_the_queue_comes_page_by_page(store: Store) -> None:
    for number in range(5):
        await add(store, f"Rule {number}", created_at=number)
    seen, cursor = [], None
    while True:
        page = await review_queue(store, "m", GetReviewQueueRequest(limit=2, cursor=cursor))
        seen += [each.agent_playbook.content for each in page.items]
        if (cursor := page.next_cursor) is None:
            break
    assert seen == [f"Rule {number}" for number in (4, 3, 2, 1, 0)]


# Two reviewers at once


async def seen(store: Store, number: int) -> dict[int, str]:
    return {number: review.state_of(await row(store, number))}


async def test_a_decision_about_what_somebody_else_decided_meanwhile_is_refused(store: Store) -> None:
    number = await add(store, "One")
    opened = await seen(store, number)
    await decide(store, REJECTED, number)
    asked = ReviewAgentPlaybooksRequest(agent_playbook_ids=[number], playbook_status=APPROVED, reviewer="bo")
    with pytest.raises(Conflict, match=r"^eve set it to rejected at .* after you had opened"):
        await review.decide_many(store, CLOCK, asked, seen=opened)
    assert (await row(store, number)).review is REJECTED


async def test_a_decision_about_what_somebody_else_edited_meanwhile_is_refused(store: Store) -> None:
    number = await add(store, "One")
    opened = await seen(store, number)
    edit = UpdateAgentPlaybookRequest(agent_playbook_id=number, content="Two", reviewer="eve", reason="typo")
    await review.edit(store, CLOCK, edit)
    approve = UpdateAgentPlaybookRequest(agent_playbook_id=number, playbook_status=APPROVED, reviewer="bo")
    with pytest.raises(Conflict, match=r"eve edited it .*'typo'"):
        await review.edit(store, CLOCK, approve, seen=opened)
    assert (await row(store, number)).review is PENDING


async def test_one_changed_playbook_of_a_list_leaves_all_as_they_are(store: Store) -> None:
    one, two = await add(store, "One"), await add(store, "Two")
    opened = await seen(store, one) | await seen(store, two)
    await decide(store, REJECTED, two)
    asked = ReviewAgentPlaybooksRequest(agent_playbook_ids=[one, two], playbook_status=APPROVED)
    with pytest.raises(Conflict):
        await review.decide_many(store, CLOCK, asked, seen=opened)
    assert (await row(store, one)).review is PENDING


async def test_undo_takes_back_the_own_decision_and_not_a_later_one(store: Store) -> None:
    number = await add(store, "One")
    await decide(store, APPROVED, number)
    after_mine = await seen(store, number)
    await decide(store, REJECTED, number)
    with pytest.raises(Conflict, match="eve set it to rejected"):
        await review.undo(store, CLOCK, UndoReviewRequest(agent_playbook_ids=[number]), seen=after_mine)
    await undo(store, number)
    await review.undo(store, CLOCK, UndoReviewRequest(agent_playbook_ids=[number]), seen=after_mine)
    assert (await row(store, number)).review is PENDING


async def test_the_list_of_the_queue_has_what_waits_page_by_page(store: Store) -> None:
    numbers = [await add(store, f"Rule {place}", created_at=place) for place in range(5)]
    await decide(store, APPROVED, numbers[0])
    first = await review_list(store, GetReviewQueueRequest(limit=3))
    rest = await review_list(store, GetReviewQueueRequest(limit=3, cursor=first.next_cursor))
    assert [playbook.id for playbook in (*first.playbooks, *rest.playbooks)] == numbers[:0:-1]
    assert (first.waiting_count, rest.next_cursor) == (4, None)


async def test_the_wording_that_a_reviewer_saw_is_found_again(store: Store) -> None:
    number = await add(store, "Ask.", trigger="a parcel is late")
    first = await row(store, number)
    for content in ("Ask twice.", "Ask three times."):
        request = UpdateAgentPlaybookRequest(agent_playbook_id=number, content=content, playbook_status=APPROVED)
        await review.edit(store, CLOCK, request)
    events = await store.read(lambda tx: tx.learnings.lineage(number))
    now = await row(store, number)
    seen = review.version_seen(now, events, review.state_of(first))
    assert seen is not None
    assert (seen.content, seen.review) == ("Ask.", PENDING)
    assert review.version_seen(now, events, review.state_of(now)) == now
    assert review.version_seen(now, events, "unknown") is None


async def test_a_new_wording_has_its_vector_when_it_can_be_searched(store: Store) -> None:
    number = await add(store, "Vague")
    embedder = ScriptedEmbedder()
    request = UpdateAgentPlaybookRequest(agent_playbook_id=number, content="Exact", playbook_status=APPROVED)
    await review.edit(store, CLOCK, request, embed=ImmediateEmbedder(embedder).embed)
    stored = (await store.read(lambda tx: tx.learnings.vectors([number], embedder.name)))[number]
    (vector,) = await embedder.embed(["Exact"])
    assert stored == vector.astype("float16").tobytes()
