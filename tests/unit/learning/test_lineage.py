"""The graph around a learning, and the versions of its wording."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reflexio.aggregation import review
from reflexio.errors import NotFound
from reflexio.learning import lineage as graph
from reflexio.learning import manual_edits
from reflexio.learning.lineage import MOST_SOURCES, Lineage
from reflexio.models.learning import Kind, Learning, PlaybookStatus, Scope, Status
from reflexio.models.playbook import UpdateAgentPlaybookRequest
from reflexio.models.review import UndoReviewRequest
from reflexio.ports.clock import SystemClock
from reflexio.ports.storage import LearningFilter, RequestFilter, Store
from reflexio.providers.scripted import ScriptedEmbedder
from reflexio.retrieval.immediate import ImmediateEmbedder
from reflexio.storage.sqlite import open_sqlite
from tests.builders import request, said

CLOCK = SystemClock()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    database = open_sqlite(tmp_path / "reflexio.db")
    yield database.of("org")
    await database.close()


async def publish(store: Store, session: str, *words: str) -> list[int]:
    stored = request(session_id=session)
    await store.write(lambda tx: tx.requests.add(stored))
    await store.write(lambda tx: tx.interactions.add(stored, said(*words)))
    turns = await store.read(lambda tx: tx.interactions.of_requests([stored.request_id]))
    return [turn.interaction_id for turn in turns]


async def add(store: Store, kind: Kind, content: str, **more: Any) -> Learning:
    row = replace(Learning(kind, content, created_at=100), **more)
    (number,) = await store.write(lambda tx: tx.learnings.add([row]))
    return replace(row, id=number)


async def taught(store: Store, session: str, **more: Any) -> Learning:
    turns = await publish(store, session, "Ask first.", "Fine.", "Thanks")
    details = {"source_interaction_ids": turns[:1], "window_interaction_ids": turns, "source_span": "Ask first."}
    return await add(store, Kind.USER_PLAYBOOK, "Ask first.", user_id="ann", details=details, **more)


def window(playbook: Learning) -> dict[str, Any]:
    turns = playbook.details["window_interaction_ids"]
    return {"user_playbook_id": playbook.id, "source_interaction_ids": turns}


async def look(store: Store, learning: Learning, start: int = 0) -> Lineage:
    return await graph.lineage(store, learning.kind, learning.public_id, start=start)


async def test_an_agent_playbook_leads_back_to_the_words_that_taught_it(store: Store) -> None:
    playbook = await taught(store, "monday")
    shared = await add(store, Kind.AGENT_PLAYBOOK, "Ask.", details={"source_windows": [window(playbook)]})
    (source,) = (await look(store, shared)).sources
    assert (source.playbook and source.playbook.id, source.session_id, source.quote) == (
        playbook.id,
        "monday",
        "Ask first.",
    )
    assert ([turn.content for turn in source.cited], source.turn_count) == (["Ask first."], 3)


async def test_hundreds_of_sources_are_read_page_by_page(store: Store) -> None:
    playbook = await taught(store, "monday")
    windows = [window(playbook)] * 300
    shared = await add(store, Kind.AGENT_PLAYBOOK, "Ask.", details={"source_windows": windows})
    first, last = await look(store, shared), await look(store, shared, start=296)
    assert (len(first.sources), first.source_count, len(last.sources)) == (MOST_SOURCES, 300, 4)


async def test_a_source_that_was_erased_leaves_its_place_without_words(store: Store) -> None:
    playbook = await taught(store, "monday")
    shared = await add(store, Kind.AGENT_PLAYBOOK, "Ask.", details={"source_windows": [window(playbook)]})
    await store.write(lambda tx: tx.learnings.remove(LearningFilter(Kind.USER_PLAYBOOK, ids=(playbook.id,))))
    await store.write(lambda tx: tx.requests.remove_some(RequestFilter(user_id="ann")))
    (source,) = (await look(store, shared)).sources
    assert (source.playbook, source.cited, source.quote, source.at) == (None, (), "", 0)


async def test_a_user_playbook_shows_the_agent_playbooks_made_of_it_and_no_others(store: Store) -> None:
    playbook = await taught(store, "monday", cluster=3, agent_version="v1", name="playbook")
    place: dict[str, Any] = {"cluster": 3, "agent_version": "v1", "name": "playbook"}
    made = await add(store, Kind.AGENT_PLAYBOOK, "Ask.", details={"source_windows": [window(playbook)]}, **place)
    other = {"source_windows": [{"user_playbook_id": playbook.id + 1000, "source_interaction_ids": []}]}
    await add(store, Kind.AGENT_PLAYBOOK, "Other.", details=other, **place)
    seen = await look(store, playbook)
    assert [row.id for row in seen.made] == [made.id]
    assert [source.session_id for source in seen.sources] == ["monday"]


async def test_successors_and_what_was_replaced(store: Store) -> None:
    old = await add(store, Kind.AGENT_PLAYBOOK, "Old.")
    new = await add(store, Kind.AGENT_PLAYBOOK, "New.", details={"replaces": [old.id]})
    details = {"superseded_by": new.public_id}
    await store.write(lambda tx: tx.learnings.replace(replace(old, status=Status.SUPERSEDED, details=details)))
    assert [row.id for row in (await look(store, new)).replaced] == [old.id]
    assert [row.id for row in (await look(store, old)).successors] == [new.id]


async def test_merged_profiles_of_the_user_are_what_the_profile_replaced(store: Store) -> None:
    new = await add(store, Kind.PROFILE, "Vegan.", key="new", user_id="ann")
    merged = {"merged_into": "new"}
    old = await add(store, Kind.PROFILE, "Vegetarian.", key="old", user_id="ann", status=Status.MERGED, details=merged)
    assert [row.id for row in (await look(store, new)).replaced] == [old.id]


@pytest.mark.parametrize("public_id", ["0", "-1", "x", "1" * 30, "٣"])
async def test_an_id_that_cannot_be_is_not_found(store: Store, public_id: str) -> None:
    with pytest.raises(NotFound):
        await graph.lineage(store, Kind.USER_PLAYBOOK, public_id)


# Versions


async def edit(store: Store, number: int, decision: PlaybookStatus | None = None, **words: Any) -> None:
    asked = UpdateAgentPlaybookRequest(
        agent_playbook_id=number, playbook_status=decision, reviewer="eve", reason="clearer", **words
    )
    await review.edit(store, CLOCK, asked)


async def contents(store: Store, learning: Learning) -> list[str]:
    return [version.learning.content for version in (await look(store, learning)).versions]


async def test_every_edit_is_a_version_with_who_and_why(store: Store) -> None:
    playbook = await add(store, Kind.AGENT_PLAYBOOK, "One.", trigger="Always")
    await edit(store, playbook.id, content="Two.")
    await edit(store, playbook.id, PlaybookStatus.APPROVED, content="Three.", trigger="Often")
    await edit(store, playbook.id, PlaybookStatus.REJECTED)
    versions = (await look(store, playbook)).versions
    assert [(version.learning.content, version.learning.trigger) for version in versions] == [
        ("Three.", "Often"),
        ("Two.", "Always"),
        ("One.", "Always"),
    ]
    assert [(version.event.actor, version.event.reason) for version in versions if version.event] == [
        ("eve", "clearer")
    ] * 2


async def test_undo_is_a_version_too(store: Store) -> None:
    playbook = await add(store, Kind.AGENT_PLAYBOOK, "One.")
    await edit(store, playbook.id, PlaybookStatus.APPROVED, content="Two.", scope=Scope.ALWAYS)
    await review.undo(store, CLOCK, UndoReviewRequest(agent_playbook_ids=[playbook.id]))
    versions = (await look(store, playbook)).versions
    assert [(version.learning.content, version.learning.scope) for version in versions] == [
        ("One.", Scope.WHEN_RELEVANT),
        ("Two.", Scope.ALWAYS),
        ("One.", Scope.WHEN_RELEVANT),
    ]


async def test_the_wording_that_an_edit_by_hand_replaced_is_kept(store: Store) -> None:
    playbook = await taught(store, "monday")
    where = LearningFilter(Kind.USER_PLAYBOOK, ids=(playbook.id,))
    await manual_edits.update(store, CLOCK, ImmediateEmbedder(ScriptedEmbedder()), where, {"content": "Ask twice."})
    assert await contents(store, playbook) == ["Ask twice.", "Ask first."]


async def test_a_learning_that_nobody_changed_has_one_version(store: Store) -> None:
    assert await contents(store, await taught(store, "monday")) == ["Ask first."]
