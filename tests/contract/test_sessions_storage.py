"""What every storage backend promises about sessions."""

from reflexio.models.paging import Page
from reflexio.ports.storage import Days, SessionFilter, SessionSummary, Store, TimeRange
from tests.builders import request, said
from tests.contract.test_storage import add

EVERYTHING = Page(100)


async def page(store: Store, where: SessionFilter | None = None, wanted: Page = EVERYTHING) -> list[SessionSummary]:
    return (await store.read(lambda tx: tx.sessions.page(where or SessionFilter(), wanted))).rows


async def publish(
    store: Store, session: str, *words: str, at: int = 100, user: str = "ann", version: str = "v1"
) -> None:
    made = request(session_id=session, user_id=user, created_at=at, agent_version=version)
    await add(store, made, said(*words, at=at))


async def test_a_session_is_listed_once_by_its_newest_request(store: Store) -> None:
    await publish(store, "old", "first words", "more", at=100)
    await publish(store, "new", "other", at=200)
    await publish(store, "old", "again", at=300)
    rows = await page(store)
    assert [(row.session_id, row.began_at, row.created_at, row.requests, row.turns) for row in rows] == [
        ("old", 100, 300, 2, 3),
        ("new", 200, 200, 1, 1),
    ]
    assert [row.opening for row in rows] == ["first words", "other"]


async def test_sessions_of_the_same_name_of_two_users_are_two(store: Store) -> None:
    await publish(store, "1", "of ann", at=100)
    await publish(store, "1", "of bob", at=200, user="bob")
    assert [(row.user_id, row.turns, row.opening) for row in await page(store)] == [
        ("bob", 1, "of bob"),
        ("ann", 1, "of ann"),
    ]
    turns = await store.read(lambda tx: tx.sessions.turns("ann", "1", 10))
    assert [turn.content for turn in turns] == ["of ann"]


async def test_pages_follow_each_other_without_gaps(store: Store) -> None:
    for number in range(7):
        await publish(store, f"s{number}", "words", at=100 + number // 2)
    seen, wanted = list[str](), Page(3)
    for _ in range(3):
        listing = await store.read(lambda tx: tx.sessions.page(SessionFilter(), wanted))  # noqa: B023 - read at once
        seen += [row.session_id for row in listing.rows]
        wanted = Page(3, listing.end)
    assert listing.end is None
    assert seen == [f"s{number}" for number in reversed(range(7))]


async def test_sessions_are_filtered_by_user_version_and_time(store: Store) -> None:
    await publish(store, "a", "x", at=100)
    await publish(store, "b", "x", at=200, user="bob", version="v2")
    await publish(store, "a", "x", at=300)
    assert [row.session_id for row in await page(store, SessionFilter(user_id="bob"))] == ["b"]
    assert [row.session_id for row in await page(store, SessionFilter(agent_version="v1"))] == ["a"]
    within = SessionFilter(within=TimeRange(50, 250))
    assert [(row.session_id, row.created_at) for row in await page(store, within)] == [("b", 200), ("a", 100)]
    assert await store.read(lambda tx: tx.sessions.agent_versions(10)) == ["v1", "v2"]
    assert await store.read(lambda tx: tx.sessions.agent_versions(1)) == ["v1"]


async def test_turns_lead_to_their_session_and_are_read_in_parts(store: Store) -> None:
    await publish(store, "a", "one", "two", at=100)
    await publish(store, "b", "elsewhere", at=150)
    await publish(store, "a", "three", at=200)
    turns = await store.read(lambda tx: tx.sessions.turns("ann", "a", 10))
    assert [turn.content for turn in turns] == ["one", "two", "three"]
    numbers = [turn.interaction_id for turn in turns]
    rest = await store.read(lambda tx: tx.sessions.turns("ann", "a", 1, after=numbers[0]))
    assert [turn.content for turn in rest] == ["two"]
    assert await store.read(lambda tx: tx.sessions.turns_before("ann", "a", numbers[2], 10)) == [numbers[1], numbers[0]]
    found = await store.read(lambda tx: tx.sessions.of_turns([numbers[2], 10**9]))
    assert {number: row.session_id for number, row in found.items()} == {numbers[2]: "a"}
    assert await store.read(lambda tx: tx.sessions.get("bob", "a")) is None


async def test_days_are_counted_since_the_start(store: Store) -> None:
    day = 86_400
    for at in (day - 1, day, 2 * day - 1, 3 * day):
        await publish(store, "s", "x", "y", at=at)
    assert await store.read(lambda tx: tx.requests.count_by_day(Days(1, 3))) == {1: 2, 3: 1}
    assert await store.read(lambda tx: tx.interactions.count_by_day(Days(1, 2))) == {1: 4}
