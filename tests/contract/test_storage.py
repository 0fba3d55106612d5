"""What every storage backend promises to those above it."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflexio.errors import Conflict
from reflexio.models.access import KeyScope
from reflexio.models.interaction import Interaction, InteractionData, Request
from reflexio.models.learning import Kind, Learning
from reflexio.models.paging import Listing, Page
from reflexio.ports.storage import (
    Database,
    LearningFilter,
    NewApiKey,
    Receipt,
    RemovedRequests,
    RequestFilter,
    Store,
    TimeRange,
    TurnScope,
    Tx,
    VersionRequests,
    WaitingUsers,
)
from tests.builders import contents, name, request, said

ALWAYS = TimeRange()


async def add(store: Store, made: Request, turns: Sequence[InteractionData] | None = None) -> None:
    def write(tx: Tx) -> None:
        tx.requests.add(made)
        tx.interactions.add(made, said() if turns is None else turns)

    await store.write(write)


async def turns_of(store: Store, user_id: str | None = "ann", within: TimeRange = ALWAYS) -> list[str]:
    return contents((await store.read(lambda tx: tx.interactions.page(user_id, within, Page(1000)))).rows)


async def test_a_request_comes_back_as_it_was(store: Store) -> None:
    made = request(
        source="chat",
        agent_version="v1",
        evaluation_only=True,
        force_extraction=True,
        skip_aggregation=True,
        retrieval_experiment_id="e",
        retrieval_experiment_arm="holdout",
    )
    await add(store, made)
    assert await store.read(lambda tx: tx.requests.get(made.request_id)) == made
    assert await store.read(lambda tx: tx.requests.get("unknown")) is None


async def test_a_turn_comes_back_as_it_was(store: Store) -> None:
    turn = InteractionData.model_validate(
        {
            "content": "x",
            "role": "Agent",
            "expert_content": "e",
            "tools_used": [{"tool_name": "t", "tool_data": {"ü": [1, 2.5, None, True]}}],
            "citations": [{"kind": "profile", "real_id": "1"}],
            "user_action": "type",
            "user_action_description": "d",
        }
    )
    made = request()
    await add(store, made, [turn])
    (found,) = await store.read(lambda tx: tx.interactions.of_requests([made.request_id]))
    assert isinstance(found, Interaction)
    kept = found.model_dump(exclude={"interaction_id", "user_id", "request_id"})
    assert kept == turn.model_dump(exclude={"image_encoding"})
    assert await store.read(lambda tx: tx.interactions.count_unlearned(made.request_id)) == 1


async def test_a_taken_request_id_is_a_conflict_and_stores_nothing(store: Store) -> None:
    made = request()
    await add(store, made)
    with pytest.raises(Conflict, match=made.request_id):
        await add(store, made, said("again"))
    assert await turns_of(store) == ["hello"]


async def test_a_write_that_raises_leaves_nothing(store: Store) -> None:
    def write(tx: Tx) -> None:
        tx.requests.add(request())
        tx.users.mark_unlearned("ann", 5)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store.write(write)
    assert await store.read(lambda tx: tx.requests.count()) == 0
    assert await store.read(lambda tx: tx.users.waiting("ann")) is None


async def test_a_write_returns_what_its_function_returns_and_sees_its_own_rows(store: Store) -> None:
    def write(tx: Tx) -> int:
        tx.requests.add(request())
        return tx.requests.count()

    assert await store.write(write) == 1


async def test_writes_at_the_same_time_fail_alone(store: Store) -> None:
    await add(store, request("taken"))

    async def one(number: int) -> str:
        made = request("taken") if number % 3 == 0 else request(f"r{number}")
        try:
            await add(store, made, said(str(number)))
        except Conflict:
            return "conflict"
        return "stored"

    done = await asyncio.gather(*map(one, range(60)))
    assert done.count("conflict") == 20
    assert sorted(await turns_of(store)) == sorted(["hello", *(str(n) for n in range(60) if n % 3)])


async def test_reads_go_on_while_writes_are_made(store: Store) -> None:
    async def read() -> int:
        return await store.read(lambda tx: tx.interactions.count())

    results = await asyncio.gather(*[add(store, request()) for _ in range(30)], *[read() for _ in range(30)])
    assert all(0 <= count <= 30 for count in results[30:] if count is not None)
    assert await read() == 30


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moments=st.lists(st.integers(0, 5), max_size=25), size=st.integers(1, 26))
async def test_pages_give_every_row_once_and_in_order(database: Database, moments: list[int], size: int) -> None:
    store = database.of(name("org"))
    turns = [InteractionData(content=str(number), created_at=at) for number, at in enumerate(moments)]
    if turns:
        await add(store, request(), turns)
    seen: list[str] = []
    page = Page(size)
    while True:
        here = page
        found = await store.read(lambda tx, here=here: tx.interactions.page("ann", ALWAYS, here))  # type: ignore[misc]
        assert len(found.rows) <= size
        seen += contents(found.rows)
        assert len(seen) <= len(moments)
        if found.end is None:
            break
        page = replace(page, after=found.end)
    assert seen == [str(n) for n in sorted(range(len(moments)), key=lambda n: (-moments[n], -n))]


async def test_ranges_of_time_include_both_ends(store: Store) -> None:
    await add(store, request(), [InteractionData(content=str(at), created_at=at) for at in range(1, 6)])
    assert await turns_of(store, within=TimeRange(2, 4)) == ["4", "3", "2"]
    assert await turns_of(store, within=TimeRange(start=5)) == ["5"]
    assert await turns_of(store, within=TimeRange(end=1)) == ["1"]


async def test_requests_are_filtered_by_everything(store: Store) -> None:
    await add(store, request("a", user_id="ann", session_id="s", source="chat", created_at=1))
    await add(store, request("b", user_id="bob", session_id="s", source="mail", created_at=2))
    await add(store, request("c", user_id="ann", session_id="t", source="mail", created_at=3))

    async def ids(where: RequestFilter, offset: int = 0) -> str:
        found = await store.read(lambda tx: tx.requests.page(where, Page(10), offset=offset))
        return "".join(each.request_id for each in found.rows)

    assert await ids(RequestFilter()) == "cba"
    assert await ids(RequestFilter(), offset=1) == "ba"
    assert await ids(RequestFilter(user_id="ann")) == "ca"
    assert await ids(RequestFilter(session_id="s", source="mail")) == "b"
    assert await ids(RequestFilter(within=TimeRange(2, 3))) == "cb"
    assert await ids(RequestFilter(request_id="a")) == "a"


async def test_removing_a_request_takes_its_turns(store: Store) -> None:
    for each in "abc":
        await add(store, request(each), said(each))
    assert await store.write(lambda tx: tx.requests.remove_some(RequestFilter(request_id="a"))) == RemovedRequests(1, 1)
    assert await store.write(lambda tx: tx.requests.remove_some(["b", "unknown"])) == RemovedRequests(1, 1)
    assert await turns_of(store) == ["c"]


async def test_ten_thousand_ids_can_be_removed_at_once(store: Store) -> None:
    await add(store, request("r9999"))
    assert await store.write(lambda tx: tx.requests.remove_some([f"r{n}" for n in range(10_000)]))


async def test_many_turns_are_removed_a_few_in_each_write(store: Store) -> None:
    await add(store, request("long"), said(*(f"turn {number}" for number in range(450))))
    await add(store, request("short"), said("tea"))
    await add(store, request("huge"), said("x" * 150_000, "y" * 150_000))
    removed = []
    while some := await store.write(lambda tx: tx.requests.remove_some(RequestFilter())):
        removed.append((some.requests, some.turns))
    assert removed == [(0, 200), (0, 200), (0, 52), (3, 1)]
    assert await turns_of(store) == []
    assert await store.read(lambda tx: tx.requests.count()) == 0


async def test_finishing_marks_the_newest_request_of_the_session(store: Store) -> None:
    for each in "ab":
        await add(store, request(each))
    assert await store.write(lambda tx: tx.requests.finish("ann", "s"))
    found = await store.read(lambda tx: tx.requests.page(RequestFilter(), Page(10)))
    assert [(each.request_id, each.session_finished) for each in found.rows] == [("b", True), ("a", False)]
    assert not await store.write(lambda tx: tx.requests.finish("bob", "s"))


async def test_a_user_stays_unlearned_since_the_first_unlearned_turn(store: Store) -> None:
    for now in (5, 9):
        await store.write(lambda tx, now=now: tx.users.mark_unlearned("ann", now))  # type: ignore[misc]
    progress = await store.read(lambda tx: tx.users.waiting("ann"))
    assert progress is not None
    assert (progress.attempts, progress.unlearned_since) == (0, 5)


async def test_a_receipt_is_kept_once_and_forgotten_when_old(database: Database, store: Store) -> None:
    first, second = Receipt("f", "first"), Receipt("g", "second")
    assert await store.write(lambda tx: tx.receipts.add("k", first, 10))
    assert not await store.write(lambda tx: tx.receipts.add("k", second, 20))
    assert await store.read(lambda tx: tx.receipts.get("k")) == first
    assert await database.of("other").read(lambda tx: tx.receipts.get("k")) is None
    assert await database.forget_receipts(10) == 0
    assert await database.forget_receipts(11) == 1
    assert await store.read(lambda tx: tx.receipts.get("k")) is None


async def test_the_last_configuration_counts(store: Store) -> None:
    assert await store.read(lambda tx: tx.configs.get()) is None
    for document in ("{}", '{"a": 1}'):
        await store.write(lambda tx, document=document: tx.configs.put(document, 1))  # type: ignore[misc]
    assert await store.read(lambda tx: tx.configs.get()) == '{"a": 1}'


async def test_keys_are_found_by_digest_until_revoked(database: Database) -> None:
    some = frozenset({KeyScope.READ, KeyScope.REVIEW})
    new = NewApiKey("acme", "rfx_abc", "digest", "laptop", some, "eve")
    made = await database.write_keys(lambda keys: keys.add(new, 7))
    assert (made.scopes, made.owner, made.label) == (new.scopes, "eve", "laptop")
    assert await database.read_keys(lambda keys: keys.find("digest")) == made
    assert await database.read_keys(lambda keys: keys.list()) == [made]
    assert await database.write_keys(lambda keys: keys.revoke(made.id, 8))
    assert not await database.write_keys(lambda keys: keys.revoke(made.id, 9))
    assert await database.read_keys(lambda keys: keys.find("digest")) is None
    assert await database.read_keys(lambda keys: keys.list()) == []


async def test_no_statement_reaches_another_organisation(database: Database) -> None:
    ours, theirs = database.of("ours"), database.of("theirs")
    await add(theirs, request("r"))
    await theirs.write(lambda tx: tx.users.mark_unlearned("ann", 5))
    (turn,) = (await theirs.read(lambda tx: tx.interactions.page(None, ALWAYS, Page(1)))).rows

    def touch(tx: Tx) -> list[object]:
        return [
            tx.requests.get("r"),
            tx.requests.finish("ann", "s"),
            tx.requests.remove_some(RequestFilter()),
            tx.requests.remove_some(["r"]),
            tx.requests.count(),
            tx.interactions.of_requests(["r"]),
            tx.interactions.count_unlearned("r"),
            tx.interactions.remove("ann", turn.interaction_id),
            tx.interactions.count(),
            tx.users.waiting("ann"),
            tx.users.remove("ann"),
            tx.learnings.remove(LearningFilter(Kind.PROFILE)),
        ]

    assert not any(found for found in await ours.write(touch) if not isinstance(found, dict))
    assert await turns_of(theirs) == ["hello"]
    assert await theirs.read(lambda tx: tx.users.waiting("ann")) is not None
    assert not (await theirs.read(lambda tx: tx.requests.page(RequestFilter(), Page(1)))).rows[0].session_finished


async def test_interaction_ids_are_never_used_again(store: Store) -> None:
    await add(store, request("a"))
    first = (await store.read(lambda tx: tx.interactions.of_requests(["a"])))[-1].interaction_id
    await store.write(lambda tx: tx.requests.remove_some(RequestFilter()))
    await add(store, request("b"))
    assert (await store.read(lambda tx: tx.interactions.of_requests(["b"])))[-1].interaction_id > first


async def test_a_cancelled_caller_does_not_disturb_the_others(store: Store) -> None:
    async def one(number: int) -> None:
        await add(store, request(f"r{number}"), said(str(number)))

    tasks = [asyncio.create_task(one(number)) for number in range(40)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert {str(n) for n in range(1, 40, 2)} <= set(await turns_of(store))
    await one(99)


async def test_closing_makes_all_that_was_submitted(database: Database) -> None:
    store = database.of("acme")
    writes = [asyncio.create_task(add(store, request())) for _ in range(50)]
    await asyncio.sleep(0)
    await database.close()
    await asyncio.gather(*writes)


async def scoped(store: Store, where: TurnScope, *, last: int | None = None) -> dict[str, list[str]]:
    def look(tx: Tx) -> dict[str, list[str]]:
        users = tx.interactions.users(where)
        found = {user: tx.interactions.within(where, user, last=last) for user in users}
        return {user: [each.turn.content for each in turns] for user, turns in found.items()}

    return await store.read(look)


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (TurnScope(), {"ann": ["1", "2", "3", "4"], "bob": ["5"]}),
        (TurnScope(user_id="ann"), {"ann": ["1", "2", "3", "4"]}),
        (TurnScope(user_id="nobody"), {}),
        (TurnScope(source="chat"), {"ann": ["1", "2"], "bob": ["5"]}),
        (TurnScope(agent_version="v2"), {"ann": ["3", "4"]}),
        (TurnScope(source="chat", agent_version="v2"), {}),
        (TurnScope(within=TimeRange(200, 300)), {"ann": ["3", "4"], "bob": ["5"]}),
        (TurnScope(within=TimeRange(None, 199)), {"ann": ["1", "2"]}),
    ],
)
async def test_turns_in_a_scope_are_those_of_all_conditions(
    store: Store, where: TurnScope, found: dict[str, list[str]]
) -> None:
    await add(store, request(source="chat", agent_version="v1"), said("1", "2"))
    await add(store, request(source="mail", agent_version="v2"), said("3", "4", at=200))
    await add(store, request(source="chat", agent_version="v1", user_id="bob"), said("5", at=300))
    await add(store, request(evaluation_only=True), said("never"))
    assert await scoped(store, where) == found


async def test_the_last_turns_in_a_scope_come_oldest_first_learned_or_not(store: Store) -> None:
    made = request()
    await add(store, made, said("1", "2", "3", "4"))
    ids = [turn.interaction_id for turn in await store.read(lambda tx: tx.interactions.of_requests([made.request_id]))]
    await store.write(lambda tx: tx.interactions.mark_learned(ids[1:]))
    assert await scoped(store, TurnScope(), last=3) == {"ann": ["2", "3", "4"]}
    assert await store.read(lambda tx: tx.interactions.unlearned_among([*ids, 10**9])) == {ids[0]}


async def test_turns_are_marked_as_not_understood_for_each_kind_alone(store: Store) -> None:
    made = request()
    await add(store, made, said("1", "2", "3"))
    ids = [turn.interaction_id for turn in await store.read(lambda tx: tx.interactions.of_requests([made.request_id]))]
    both = (Kind.PROFILE, Kind.USER_PLAYBOOK)
    await store.write(lambda tx: tx.interactions.mark_unread(ids[1:], both))
    await store.write(lambda tx: tx.interactions.mark_unread(ids, (Kind.PROFILE,), is_unread=False))
    assert await scoped(store, TurnScope(only_unread=Kind.PROFILE)) == {}
    assert await scoped(store, TurnScope(only_unread=Kind.USER_PLAYBOOK)) == {"ann": ["2", "3"]}
    assert await store.read(lambda tx: tx.interactions.count_unread("ann")) == 2
    await store.write(lambda tx: tx.interactions.mark_unread(ids, both, is_unread=False))
    assert await store.read(lambda tx: tx.interactions.count_unread()) == 0


async def test_a_scope_reaches_no_other_organisation(database: Database) -> None:
    # The same request id on both sides: only its own organisation says which version and source it has.
    await add(database.of("ours"), request("same", source="chat"))
    await add(database.of("theirs"), request("same", source="mail", user_id="bob"))
    assert await scoped(database.of("ours"), TurnScope()) == {"ann": ["hello"]}
    assert await scoped(database.of("ours"), TurnScope(source="mail")) == {}
    (theirs,) = await database.of("theirs").read(lambda tx: tx.interactions.within(TurnScope(), "bob"))
    assert (
        await database.of("ours").read(lambda tx: tx.interactions.unlearned_among([theirs.turn.interaction_id]))
        == set()
    )


async def test_the_backlog_is_walked_page_after_page(database: Database) -> None:
    places = [(org, user) for org in ("one", "two") for user in ("ann", "bob", "cid")]
    for org, user in places:
        await database.of(org).write(lambda tx, user=user: tx.users.mark_unlearned(user, 100))  # type: ignore[misc]
    assert await database.waiting_organisations(5) == ["one", "two"]
    assert await database.waiting_organisations(1) == ["one"]
    assert await database.waiting_organisations(5, after="one") == ["two", "one"]
    for org in ("one", "two"):
        store, seen, after = database.of(org), list[tuple[str, str]](), None
        while page := await store.read(lambda tx, after=after: tx.users.longest_waiting(2, after=after)):  # type: ignore[misc]
            assert len(page) <= 2
            after = page[-1]
            seen += [(user.org_id, user.user_id) for user in page]
        assert seen == [place for place in places if place[0] == org]


async def test_waking_ends_the_pause_and_keeps_the_number_of_tries(store: Store) -> None:
    def act(tx: Tx) -> None:
        tx.users.mark_unlearned("ann", 100)
        tx.users.postpone("ann", 900, "no")
        tx.users.wake()

    await store.write(act)
    waiting = await store.read(lambda tx: tx.users.waiting("ann"))
    assert waiting is not None
    assert (waiting.retry_at, waiting.attempts) == (0, 1)


async def test_waiting_users_are_counted_in_their_organisation(database: Database) -> None:
    def act(tx: Tx) -> None:
        for user, at in (("ann", 300), ("bob", 100), ("cid", 200)):
            tx.users.mark_unlearned(user, at)
        tx.users.postpone("ann", 900, "later")
        tx.users.postpone("cid", 500, "sooner")

    await database.of("theirs").write(act)
    await database.of("ours").write(lambda tx: tx.users.mark_unlearned("ann", 50))
    counted = await database.of("theirs").read(lambda tx: tx.users.all_waiting())
    assert counted == WaitingUsers(3, 2, 100, "later")
    assert await database.of("nobody").read(lambda tx: tx.users.all_waiting()) == WaitingUsers()


async def _page(store: Store, wanted: Page) -> Listing[Interaction]:
    return await store.read(lambda tx: tx.interactions.page(None, ALWAYS, wanted))


@pytest.mark.parametrize("letter", ["a", "é", "\x01"])
async def test_a_page_ends_where_its_bytes_do(store: Store, letter: str) -> None:
    """Escapes and letters of several bytes count as they are written; a row that is longer alone is a page."""
    for number in range(4):
        await add(store, request(f"r{number}"), [InteractionData(content=letter * 4_000)])
    wanted, pages = Page(10, most_bytes=12_500), []
    while True:
        listing = await _page(store, wanted)
        assert sum(len(turn.model_dump_json()) for turn in listing.rows) <= max(12_500, 4_000 * 6 + 800)
        pages.append([turn.request_id for turn in listing.rows])
        if listing.end is None:
            break
        wanted = replace(wanted, after=listing.end)
    assert [request_id for page in pages for request_id in page] == ["r3", "r2", "r1", "r0"]
    assert len(pages) == {"a": 2, "é": 4, "\x01": 4}[letter]


async def test_the_turns_of_requests_end_with_a_whole_request(store: Store) -> None:
    for number in range(4):
        await add(store, request(f"r{number}"), said("x" * 2_000, "y" * 2_000))
    ids = ["r3", "r2", "r1", "r0"]
    turns, count = await store.read(lambda tx: tx.interactions.of_first_requests(ids, 14_000))
    assert (count, [turn.request_id for turn in turns]) == (2, ["r3", "r3", "r2", "r2"])
    assert (await store.read(lambda tx: tx.interactions.of_first_requests(ids, 1)))[1] == 1
    assert (await store.read(lambda tx: tx.interactions.of_first_requests(ids, 10**6)))[1] == 4


async def test_requests_are_counted_by_agent_version(store: Store) -> None:
    for version, user, session, at in (
        ("v1", "ann", "one", 10),
        ("v1", "ann", "one", 20),
        ("v1", "bob", "two", 30),
        ("v2", "ann", "three", 25),
        ("v2", "eve", "late", 900),
    ):
        await add(store, request(agent_version=version, user_id=user, session_id=session, created_at=at))
    await add(store, request(agent_version="v3", evaluation_only=True, created_at=20))
    counted = await store.read(lambda tx: tx.requests.by_version(TimeRange(0, 100)))
    assert counted == [VersionRequests("v1", 3, 2, 2, 30), VersionRequests("v2", 1, 1, 1, 25)]


async def test_the_requests_behind_learnings_are_counted_once(store: Store) -> None:
    rows = [
        Learning(Kind.USER_PLAYBOOK, f"Advice {number}", user_id="ann", agent_version="v1", request_id=request_id)
        for number, request_id in enumerate(("a", "a", "b", ""))
    ]
    await store.write(lambda tx: tx.learnings.add(rows))
    where = LearningFilter(Kind.USER_PLAYBOOK, agent_version="v1")
    assert await store.read(lambda tx: tx.learnings.count_requests(where)) == 2
