"""What every backend promises about finding rows: by words at once, by vectors when they are there, exactly."""

import asyncio
import threading
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from reflexio.models.learning import Kind, Learning, Status
from reflexio.ports.storage import (
    Database,
    IndexBacklog,
    LearningFilter,
    QueryVector,
    RequestFilter,
    Store,
    TextVectors,
    TimeRange,
    TurnFilter,
    Tx,
)
from reflexio.providers.scripted import ScriptedEmbedder
from reflexio.retrieval.embedding_backlog import embed_some, index_rows
from reflexio.retrieval.immediate import ImmediateEmbedder
from reflexio.storage.fulltext import prepared
from reflexio.storage.fulltext.index import stored_terms
from reflexio.storage.sqlite import open_sqlite
from tests.builders import request, said
from tests.contract.conftest import OpenDatabase

ANNS = LearningFilter(Kind.USER_PLAYBOOK, user_id="ann")
ALL = LearningFilter(Kind.USER_PLAYBOOK)
WORDS = ScriptedEmbedder()


def playbook(content: str, **changes: object) -> Learning:
    return replace(Learning(Kind.USER_PLAYBOOK, content, user_id="ann", created_at=100), **changes)  # type: ignore[arg-type]


async def add(store: Store, *rows: Learning) -> list[int]:
    return await store.write(lambda tx: tx.learnings.add(rows))


async def embed(database: Database, embedder: ScriptedEmbedder = WORDS) -> None:
    while await embed_some(database, embedder):
        pass


async def by_words(store: Store, query: str, where: LearningFilter = ANNS, limit: int = 10) -> list[int]:
    return list((await store.read(lambda tx: tx.learnings.by_words(where, query, limit))).ids)


async def by_vector(
    store: Store, query: str, where: LearningFilter = ANNS, limit: int = 10, embedder: ScriptedEmbedder = WORDS
) -> list[int]:
    vector = QueryVector(embedder.name, tuple((await embedder.embed([query]))[0].tolist()))
    found = await store.read(lambda tx: tx.learnings.by_vector(where, vector, limit))
    assert list(found.scores) == sorted(found.scores, reverse=True)
    return list(found.ids)


async def test_a_row_is_found_by_words_at_once_and_by_vector_once_embedded(database: Database, store: Store) -> None:
    tea, door = await add(store, playbook("serve tea"), playbook("lock the door"))
    assert await by_words(store, "tea") == [tea]
    assert await by_vector(store, "tea") == []
    await embed(database)
    assert await by_vector(store, "serve tea") == [tea, door]
    assert await by_vector(store, "lock door", limit=1) == [door]


async def vectors_of(*texts: str) -> TextVectors:
    return await ImmediateEmbedder(WORDS).embed(texts)


async def test_a_row_stored_with_its_vector_is_found_at_once_and_not_queued(database: Database, store: Store) -> None:
    vectors = await vectors_of("serve tea")
    rows = [playbook("serve tea"), playbook("lock the door")]
    tea, door = await store.write(lambda tx: tx.learnings.add(rows, vectors))
    assert await by_vector(store, "tea") == [tea]
    assert [row.row_id for row in await database.read_vectors(lambda queue: queue.waiting(9))] == [door]
    stored = await store.read(lambda tx: tx.learnings.vectors([tea, door], WORDS.name))
    assert stored == {tea: vectors.of["serve tea"]}
    assert await store.read(lambda tx: tx.learnings.vectors([tea], "another:model")) == {}


def _replace(changed: Learning, vectors: TextVectors, tx: Tx) -> None:
    tx.learnings.replace(changed, vectors)


async def test_a_row_changed_with_its_vector_is_found_by_its_new_meaning_at_once(
    database: Database, store: Store
) -> None:
    (row,) = await add(store, playbook("serve tea"))
    for text in ("lock the door", "water the plants"):
        change = partial(_replace, replace(playbook(text), id=row), await vectors_of(text))
        await store.write(change)
        assert await by_vector(store, text) == [row]
        assert await database.read_vectors(lambda queue: queue.waiting(9)) == []


async def test_a_trigger_is_found_like_the_content(database: Database, store: Store) -> None:
    (row,) = await add(store, playbook("ask twice", trigger="a refund is wanted"))
    await embed(database)
    assert await by_words(store, "refund") == [row]
    assert await by_vector(store, "refund") == [row]


async def test_a_changed_row_is_found_as_it_is_now(database: Database, store: Store) -> None:
    (row, other) = await add(store, playbook("serve tea"), playbook("serve jam"))
    await embed(database)
    await store.write(lambda tx: tx.learnings.replace(playbook("lock the door", id=row)))
    assert await by_words(store, "tea") == []
    assert await by_words(store, "door") == [row]
    await embed(database)
    assert await by_vector(store, "lock the door") == [row, other]
    assert await by_vector(store, "serve tea", limit=1) == [other]


async def test_a_deleted_row_is_gone_at_once_and_may_come_back(database: Database, store: Store) -> None:
    (row,) = await add(store, playbook("serve tea"))
    await embed(database)
    assert await by_vector(store, "tea") == [row]
    await store.write(lambda tx: tx.learnings.remove(replace(ANNS, ids=(row,))))
    assert await by_words(store, "tea") == []
    assert await by_vector(store, "tea") == []
    (again,) = await add(store, playbook("serve tea"))
    await embed(database)
    assert again > row
    assert await by_words(store, "tea") == await by_vector(store, "tea") == [again]


async def test_a_row_that_goes_while_it_is_embedded_leaves_nothing(database: Database, store: Store) -> None:
    (row, kept) = await add(store, playbook("serve tea"), playbook("lock the door"))
    waiting = await database.read_vectors(lambda vectors: vectors.waiting(10))
    halves = [np.ones(64, np.float16).tobytes() for _ in waiting]
    await store.write(lambda tx: tx.learnings.remove(replace(ANNS, ids=(row,))))
    await database.write_vectors(lambda vectors: vectors.put(waiting, WORDS.name, halves))
    assert await by_vector(store, "tea") == [kept]
    assert await database.read_vectors(lambda vectors: vectors.waiting(10)) == []


async def test_a_write_that_fails_leaves_nothing_to_be_found(database: Database, store: Store) -> None:
    def write(tx: Tx) -> None:
        tx.learnings.add([playbook("serve tea")])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store.write(write)
    await embed(database)
    assert await by_words(store, "tea") == await by_vector(store, "tea") == []


async def test_users_and_organisations_find_only_their_own(database: Database, store: Store) -> None:
    (mine, bobs) = await add(store, playbook("serve tea"), playbook("serve tea", user_id="bob"))
    await add(database.of("other"), playbook("serve tea"))
    await embed(database)
    for find in (by_words, by_vector):
        assert await find(store, "tea") == [mine]
        assert sorted(await find(store, "tea", ALL)) == [mine, bobs]
        assert await find(store, "tea", LearningFilter(Kind.PROFILE)) == []


FILTERS: dict[str, tuple[dict[str, object], LearningFilter]] = {
    "version": ({"agent_version": "v9"}, replace(ALL, agent_version="v9")),
    "name": ({"name": "rare"}, replace(ALL, name="rare")),
    "source": ({"source": "fax"}, replace(ALL, source="fax")),
    "request": ({"request_id": "r"}, replace(ALL, request_id="r")),
    "status": ({"status": Status.ARCHIVED}, replace(ALL, statuses=(Status.ARCHIVED,))),
    "time": ({"created_at": 7}, replace(ALL, within=TimeRange(5, 9))),
    "tags": ({"tags": ("a", "b")}, replace(ALL, tags=("b",))),
}


@pytest.mark.parametrize("what", FILTERS)
async def test_a_filter_is_applied_before_ranking(database: Database, store: Store, what: str) -> None:
    stored, where = FILTERS[what]
    await add(store, *(playbook(f"serve tea {n}") for n in range(300)))
    wanted = await add(store, *(playbook(f"tea, but rarely and with many other words {n}", **stored) for n in range(3)))
    await embed(database)
    assert sorted(await by_words(store, "serve tea", where, limit=5)) == wanted
    assert sorted(await by_vector(store, "serve tea", where, limit=5)) == wanted


@pytest.mark.parametrize("where", [ANNS, ALL])
async def test_rows_that_do_not_pass_move_no_score(database: Database, store: Store, where: LearningFilter) -> None:
    async def scores() -> list[float]:
        vector = QueryVector(WORDS.name, tuple((await WORDS.embed(["penguin"]))[0].tolist()))
        words = await store.read(lambda tx: tx.learnings.by_words(where, "penguin meeting", 10))
        vectors = await store.read(lambda tx: tx.learnings.by_vector(where, vector, 10))
        return [*words.scores, words.spread, *([vectors.mean, vectors.spread] if where is ANNS else [])]

    await add(store, playbook("a penguin rule"), playbook("a meeting rule"), playbook("a tea rule"))
    await embed(database)
    alone = await scores()
    await add(store, *(playbook(f"penguin note {n}", status=Status.ARCHIVED) for n in range(50)))
    await embed(database)
    assert await scores() == pytest.approx(alone)


async def test_what_has_expired_is_not_found(database: Database, store: Store) -> None:
    gone, kept = await add(store, playbook("tea one", expires_at=50), playbook("tea two", expires_at=51))
    await embed(database)
    for find in (by_words, by_vector):
        assert await find(store, "tea", replace(ANNS, alive_at=50)) == [kept]
        assert sorted(await find(store, "tea", replace(ANNS, alive_at=49))) == [gone, kept]


async def test_those_that_pass_are_found_behind_many_that_do_not(database: Database, store: Store) -> None:
    await add(store, *(playbook(f"serve tea {n}", expires_at=50) for n in range(300)))
    alive = await add(store, *(playbook(f"tea, but rarely and with many other words {n}") for n in range(3)))
    await embed(database)
    for find in (by_words, by_vector):
        assert sorted(await find(store, "serve tea", replace(ANNS, alive_at=50), limit=5)) == alive


async def test_rows_found_by_words_are_scored_by_vector_too(database: Database, store: Store) -> None:
    near = await add(store, *(playbook(f"serve tea {n}") for n in range(20)))
    (far, bobs) = await add(store, playbook("lock the door"), playbook("close the window", user_id="bob"))
    await embed(database)
    (new,) = await add(store, playbook("serve coffee"))
    vector = QueryVector(WORDS.name, tuple((await WORDS.embed(["serve tea"]))[0].tolist()))
    for where in (ANNS, ALL, replace(ALL, within=TimeRange(100, 100))):
        found = await store.read(lambda tx, where=where: tx.learnings.by_vector(where, vector, 5, [near[0], far, new]))  # type: ignore[misc]
        assert found.ids[0] in near
        assert len(found.ids) == len(found.scores) == len(set(found.ids) | {near[0], far})
        assert found.ids[-1] == far
        assert not {new, bobs} & set(found.ids)


@pytest.mark.slow
async def test_many_rows_added_at_once_keep_their_order(store: Store) -> None:
    ids = await add(store, *(playbook(f"tea {n}") for n in range(2_500)))
    rows = await store.read(lambda tx: tx.learnings.many(ids))
    assert [rows[row].content for row in ids] == [f"tea {n}" for n in range(2_500)]


async def test_a_read_is_of_one_moment(database: Database, store: Store) -> None:
    (tea,) = await add(store, playbook("serve tea"))
    loop, halfway, written = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def look(tx: Tx) -> list[tuple[tuple[int, ...], list[int]]]:
        seen = [(tx.learnings.by_words(ANNS, "tea", 5).ids, list(tx.learnings.many([tea, tea + 1])))]
        loop.call_soon_threadsafe(halfway.set)
        assert written.wait(10)
        return [*seen, (tx.learnings.by_words(ANNS, "tea", 5).ids, list(tx.learnings.many([tea, tea + 1])))]

    reading = asyncio.ensure_future(store.read(look))
    await halfway.wait()
    await add(store, playbook("pour tea"))
    written.set()
    assert await reading == [((tea,), [tea])] * 2
    assert len(await by_words(store, "tea")) == 2


async def test_vectors_of_two_models_are_never_compared(database: Database, store: Store) -> None:
    rows = await add(store, playbook("serve tea"), playbook("lock the door"))
    await embed(database)
    other = ScriptedEmbedder(name="scripted:other", dimensions=32)
    assert await by_vector(store, "tea", embedder=other) == []
    assert await database.write_vectors(lambda vectors: vectors.queue_all_but(other.name)) == 2
    assert await database.write_vectors(lambda vectors: vectors.queue_all_but(other.name)) == 0, "queued already"
    await embed(database, other)
    assert await by_vector(store, "serve tea", embedder=other) == rows
    assert await database.write_vectors(lambda vectors: vectors.queue_all_but(other.name)) == 0
    assert await database.write_vectors(lambda vectors: vectors.queue_all_but(WORDS.name)) == 2
    await embed(database)
    assert await by_vector(store, "serve tea") == rows


async def test_opening_again_finds_the_same(open_again: OpenDatabase) -> None:
    first = open_again()
    rows = await add(first.of("acme"), *(playbook(f"serve tea {n}") for n in range(50)))
    await embed(first)
    before = await by_vector(first.of("acme"), "serve tea 7", limit=50)
    await first.close()
    second = open_again()
    await second.warm(WORDS.name)
    assert await by_vector(second.of("acme"), "serve tea 7", limit=50) == before
    assert sorted(before) == rows
    assert await by_words(second.of("acme"), "7", limit=1) == [rows[7]]
    await second.close()


async def test_a_changed_text_is_not_found_by_its_old_meaning(database: Database, store: Store) -> None:
    (row,) = await add(store, playbook("serve tea"))
    await embed(database)
    assert await by_vector(store, "serve tea") == [row]
    kept = playbook("serve tea", id=row, rationale="they asked for it")
    await store.write(lambda tx: tx.learnings.replace(kept))
    assert await by_vector(store, "serve tea") == [row], "the text is the same, and so is its vector"
    await store.write(lambda tx: tx.learnings.replace(replace(kept, content="lock the door")))
    assert await by_vector(store, "serve tea") == []
    assert await by_words(store, "lock") == [row]
    await embed(database)
    assert await by_vector(store, "lock the door") == [row]


async def test_the_backlog_counts_what_waits_and_since_when(database: Database, store: Store) -> None:
    def publish(tx: Tx) -> None:
        tx.requests.add(request("first"))
        tx.interactions.add(request("first"), said("tea", "cup", at=7))

    async def backlog() -> IndexBacklog:
        return await database.read_vectors(lambda queue: queue.backlog())

    assert await backlog() == IndexBacklog()
    await store.write(publish)
    await add(store, playbook("serve tea", modified_at=200))
    assert await backlog() == IndexBacklog(2, 0, 100, 1, 0, 200)
    await index_rows(database, 1)
    assert await backlog() == IndexBacklog(1, 0, 100, 1, 1, 100)
    await index_rows(database, 9)
    await embed(database)
    assert await backlog() == IndexBacklog()


async def test_postponed_rows_wait_behind_the_others(database: Database, store: Store) -> None:
    rows = await add(store, *(playbook(str(n)) for n in range(4)))
    first = await database.read_vectors(lambda vectors: vectors.waiting(2))
    await database.write_vectors(lambda vectors: vectors.postpone(first))
    waiting = await database.read_vectors(lambda vectors: vectors.waiting(10))
    assert [each.row_id for each in waiting] == [*rows[2:], *rows[:2]]


async def test_learnings_are_embedded_before_turns(database: Database, store: Store) -> None:
    def publish(tx: Tx) -> None:
        made = request()
        tx.requests.add(made)
        tx.interactions.add(made, said("lamp", "tea"))

    await store.write(publish)
    await index_rows(database, 10)
    (row,) = await add(store, playbook("serve tea"))
    waiting = await database.read_vectors(lambda vectors: vectors.waiting(10))
    assert (waiting[0].row_id, len(waiting)) == (row, 3)
    await embed(database)
    vector = QueryVector(WORDS.name, tuple((await WORDS.embed(["tea"]))[0].tolist()))
    found = await store.read(lambda tx: tx.interactions.by_vector(TurnFilter("ann"), vector, 1))
    turns = await store.read(lambda tx: tx.interactions.many(found.ids))
    assert [turn.content for turn in turns.values()] == ["tea"]
    assert (await store.read(lambda tx: tx.interactions.by_vector(TurnFilter("bob"), vector, 1))).ids == ()
    cosines = await store.read(lambda tx: tx.interactions.cosines([*found.ids, 999], vector))
    assert cosines == dict(zip(found.ids, found.scores, strict=True))
    assert await database.of("other").read(lambda tx: tx.interactions.cosines(found.ids, vector)) == {}
    await store.write(lambda tx: tx.requests.remove_some(RequestFilter()))
    assert (await store.read(lambda tx: tx.interactions.by_vector(TurnFilter("ann"), vector, 9))).ids == ()
    assert (await store.read(lambda tx: tx.interactions.by_words(TurnFilter("ann"), "tea", 9))).ids == ()


@pytest.mark.slow
async def test_more_rows_than_a_statement_binds_can_be_asked_for(tmp_path: Path) -> None:
    """A stock SQLite binds 32,766 values; some builds bind more and would hide the fault."""

    def limited(connection: object, _: object) -> None:
        connection.setlimit(9, 1_000 * 11)  # type: ignore[attr-defined]

    event.listen(Engine, "connect", limited)
    try:
        database = open_sqlite(tmp_path / "reflexio.db")
        store = database.of("acme")
        for start in range(0, 12_000, 500):
            await add(store, *(playbook(f"tea {n}") for n in range(start, start + 500)))
        assert len(await by_words(store, "tea", limit=40_000)) >= 4_000
        found = await store.read(lambda tx: tx.learnings.many(range(1, 12_001)))
        assert len(found) == 12_000
        await database.close()
    finally:
        event.remove(Engine, "connect", limited)


async def test_long_turns_are_indexed_in_short_writes(database: Database, store: Store) -> None:
    def publish(tx: Tx) -> None:
        made = request()
        tx.requests.add(made)
        tx.interactions.add(made, said("tea " * 40_000, "lamp " * 30_000, "cup", "saucer"))

    await store.write(publish)
    assert [len(await index_rows(database, 500)) for _ in range(3)] == [1, 3, 0]


async def test_a_turn_deleted_while_its_terms_are_made_is_not_indexed(database: Database, store: Store) -> None:
    def publish(tx: Tx) -> None:
        made = request()
        tx.requests.add(made)
        tx.interactions.add(made, said("lamp", "tea"))

    await store.write(publish)
    turns = await database.read_vectors(lambda vectors: vectors.to_index(10))
    await store.write(lambda tx: tx.interactions.remove("ann", turns[0].id))
    await database.write_vectors(lambda vectors: vectors.index(turns))
    waiting = await database.read_vectors(lambda vectors: vectors.waiting(10))
    assert [row.row_id for row in waiting] == [turns[1].id]


async def test_each_organisation_has_its_share_of_the_word_index_and_of_embedding(database: Database) -> None:
    """One with an endless backlog before it delays another one's few rows by one batch at most."""

    def publish(tx: Tx, count: int) -> None:
        tx.requests.add(made := request())
        tx.interactions.add(made, said(*(f"tea {number}" for number in range(count))))

    for org, count in (("a", 40), ("b", 200), ("c", 3)):
        await database.of(org).write(lambda tx, count=count: publish(tx, count))  # type: ignore[misc]
        await add(database.of(org), *(playbook(f"lamp {number}") for number in range(2)))
    rows = await index_rows(database, 30)
    assert Counter(row.org_id for row in rows) == {"a": 10, "b": 10, "c": 3}
    batch = await embed_some(database, WORDS, 12)
    assert Counter(row.org_id for row in batch) == {"a": 4, "b": 4, "c": 4}
    assert {row.kind for row in batch[:2]} == {"user_playbook"}


async def test_organisations_take_turns_when_they_are_many(database: Database) -> None:
    for number in range(40):
        await add(database.of(f"org{number:02}"), *(playbook(f"lamp {n}") for n in range(3)))
    seen, after = set[str](), ""
    for _ in range(4):
        rows = await embed_some(database, WORDS, 16, after=after)
        after = rows[-1].org_id
        seen |= {row.org_id for row in rows}
    assert len(seen) == 40


async def test_a_large_import_is_indexed_in_short_writes(database: Database, store: Store) -> None:
    rows = await add(store, *(playbook(f"lamp{n} " + "tea " * 20_000) for n in range(8)), playbook("cup"))
    waiting = await database.read_vectors(lambda queue: queue.backlog())
    assert waiting.learnings_not_indexed == len(rows)
    sizes = []
    while indexed := await index_rows(database, 500):
        sizes.append(sum(row.letters for row in indexed))
    assert max(sizes) <= 200_000
    assert await by_words(store, "lamp7") == [rows[7]]
    assert await by_words(store, "cup") == [rows[8]]
    await embed(database)
    assert await database.read_vectors(lambda queue: queue.backlog()) == IndexBacklog()


async def test_what_is_changed_or_deleted_before_it_is_indexed_is_not_found_by_its_former_words(
    database: Database, store: Store
) -> None:
    rows = await add(store, *(playbook(f"lamp{n} " + "tea " * 20_000) for n in range(8)))
    seen = await database.read_vectors(lambda vectors: vectors.to_index(500))

    def change(tx: Tx) -> None:
        first = tx.learnings.many(rows)[rows[0]]
        tx.learnings.replace(replace(first, content="saucer"))
        tx.learnings.remove(LearningFilter(Kind.USER_PLAYBOOK, ids=(rows[1],)))

    await store.write(change)
    await database.write_vectors(lambda vectors: vectors.index(seen))
    assert await by_words(store, "lamp0") == await by_words(store, "lamp1") == []
    assert await by_words(store, "saucer") == [rows[0]]


async def test_terms_of_long_texts_are_made_outside_of_the_write(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = set[str]()
    make = stored_terms

    def observed(text: str) -> str:
        if len(text) > 100:
            threads.add(threading.current_thread().name)
        return make(text)

    monkeypatch.setattr(prepared, "stored_terms", observed)
    (row,) = await add(store, playbook("lamp " + "tea " * 20_000))
    assert await by_words(store, "lamp") == [row]
    assert not any("writer" in name for name in threads), threads
