"""Who gets a slot: organisations by their share, first come, first served within each."""

import asyncio

from reflexio.ports.fair_share import FairSlots


class Slots:
    """Takes slots for organisations, and lets go of them one by one."""

    def __init__(self, count: int, most: int | None = None) -> None:
        self.fair = FairSlots(count, most)
        self.held: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.ends: dict[str, list[asyncio.Event]] = {}

    async def ask(self, *organisations: str) -> None:
        self.tasks += [asyncio.create_task(self._hold(organisation)) for organisation in organisations]
        await self.settle()

    async def free(self, organisation: str) -> None:
        self.ends[organisation].pop(0).set()
        await self.settle()

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def _hold(self, organisation: str) -> None:
        async with self.fair.slot(organisation):
            self.held.append(organisation)
            end = asyncio.Event()
            self.ends.setdefault(organisation, []).append(end)
            await end.wait()
            self.held.remove(organisation)


async def test_one_organisation_alone_takes_all_slots() -> None:
    slots = Slots(8)
    await slots.ask(*"b" * 20)
    assert len(slots.held) == 8


async def test_another_organisation_gets_its_share_while_nobody_lets_go() -> None:
    slots = Slots(8)
    await slots.ask(*"b" * 20, *"a" * 20)
    assert (slots.held.count("b"), slots.held.count("a")) == (8, 4)
    await slots.ask("c", "c", "c")
    assert slots.held.count("c") == 2


async def test_freed_slots_go_to_who_holds_the_fewest() -> None:
    slots = Slots(4)
    await slots.ask(*"b" * 9, *"a" * 9)
    assert (slots.held.count("b"), slots.held.count("a")) == (4, 2)
    for _ in range(2):
        await slots.free("b")
    assert (slots.held.count("b"), slots.held.count("a")) == (2, 2)
    await slots.free("b")
    assert (slots.held.count("b"), slots.held.count("a")) == (2, 2)


async def test_every_organisation_has_one_slot_however_many_there_are() -> None:
    slots = Slots(2)
    names = [f"org{number}" for number in range(30)]
    await slots.ask(*(name for name in names for _ in range(3)))
    assert set(slots.held) == set(names)


async def test_slots_of_cancelled_waiters_and_holders_are_free_again() -> None:
    slots = Slots(2)
    await slots.ask(*"bbbb")
    for task in slots.tasks:
        task.cancel()
    await asyncio.gather(*slots.tasks, return_exceptions=True)
    slots.held.clear()
    await slots.ask(*"bb")
    assert slots.held == ["b", "b"]
    assert slots.fair._waiting == {}


async def test_with_a_limit_one_slot_is_always_left_for_another_organisation() -> None:
    slots = Slots(4, most=3)
    await slots.ask(*"bbbbbb")
    assert slots.held == list("bbb")
    await slots.ask("a", "c")
    assert slots.held == list("bbba")
    await slots.free("b")
    assert slots.held == list("bbac")
