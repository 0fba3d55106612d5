"""What every engine promises to those who ask it for work."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from reflexio.engine.durable import DurableWork
from reflexio.engine.memory import MemoryJournal
from reflexio.engine.process_lock import ProcessLock
from reflexio.errors import NotFound, StorageUnavailable
from reflexio.ports.clock import SystemClock
from reflexio.ports.work import Job, Journal, Json, Steps, Work, Workflow
from reflexio.storage.sqlite import open_sqlite

PATIENCE = 30
OpenWork = Callable[..., Awaitable[Work]]


@pytest.fixture(params=["memory", "sqlite"])
async def journal(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Journal]:
    if request.param == "memory":
        yield MemoryJournal()
        return
    database = open_sqlite(tmp_path / "data.db")
    yield database.journal
    await database.close()


@pytest.fixture
async def open_work(journal: Journal, tmp_path: Path) -> AsyncIterator[OpenWork]:
    """Opens an engine; the next one opened goes on with what the last one left."""
    opened = list[Work]()

    async def open_(*, concurrency: int = 8, version: int = 1, starts: bool = True, **workflows: Workflow) -> Work:
        for each in opened:
            await each.close()
        lock = ProcessLock(tmp_path / "work.lock", timeout=0.1)
        work = DurableWork(journal, concurrency=concurrency, grace=0.3, process_lock=lambda: lock)
        opened[:] = [work]
        for name, workflow in workflows.items():
            work.register(name, workflow, version=version)
        if starts:
            await work.start()
        return work

    yield open_
    for each in opened:
        await each.close()


async def ended(work: Work, key: str) -> Job:
    async with asyncio.timeout(PATIENCE):
        return await work.wait(key)


class Scene:
    """A workflow of steps that write down what they do and stop where a test wants them to."""

    def __init__(self, *steps: str) -> None:
        self.steps = steps or ("one",)
        self.made: list[str] = []
        self.begun: asyncio.Queue[str] = asyncio.Queue()
        self.gates: dict[str, asyncio.Event] = {}
        self.at_once = self.most_at_once = 0

    def hold(self, name: str) -> asyncio.Event:
        return self.gates.setdefault(name, asyncio.Event())

    async def next_begun(self) -> str:
        async with asyncio.timeout(PATIENCE):
            return await self.begun.get()

    async def __call__(self, steps: Steps, data: Json) -> Json:
        for name in self.steps:
            await steps(name, lambda name=name: self._act(data["job"], name))  # type: ignore[misc]
        return {"job": data["job"]}

    async def _act(self, job: str, step: str) -> Json:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            self.begun.put_nowait(f"{job}.{step}")
            if gate := self.gates.get(f"{job}.{step}"):
                await gate.wait()
            await asyncio.sleep(0)
            self.made.append(f"{job}.{step}")
            return {}
        finally:
            self.at_once -= 1


async def answer(value: Any) -> Any:
    return value


async def test_a_job_ends_with_the_answer_of_its_workflow(open_work: OpenWork) -> None:
    async def add(steps: Steps, data: Json) -> Json:
        first = await steps("first", lambda: answer({"sum": data["a"] + data["b"]}))
        return await steps("second", lambda: answer({"sum": first["sum"] + 1}))

    work = await open_work(add=add)
    asked = await work.enqueue("add", "k", {"a": 1, "b": 2}, lane="l")
    assert (asked.key, asked.name) == ("k", "add")
    assert await ended(work, "k") == Job("k", "add", "done", {"sum": 4})
    assert await work.get("k") == Job("k", "add", "done", {"sum": 4})


async def test_the_same_key_is_the_same_job(open_work: OpenWork) -> None:
    scene = Scene()
    gate = scene.hold("a.one")
    work = await open_work(scene=scene, other=scene)
    await work.enqueue("scene", "k", {"job": "a"}, lane="l")
    assert await scene.next_begun() == "a.one"
    again = await work.enqueue("other", "k", {"job": "b"}, lane="m")
    assert (again.name, again.state) == ("scene", "running")
    gate.set()
    await ended(work, "k")
    assert await work.enqueue("scene", "k", {"job": "c"}, lane="l") == Job("k", "scene", "done", {"job": "a"})
    assert await ended(work, "k") == Job("k", "scene", "done", {"job": "a"})
    assert scene.made == ["a.one"]


async def test_a_key_asked_for_by_many_at_once_is_one_job(open_work: OpenWork) -> None:
    scene = Scene()
    work = await open_work(scene=scene)
    await asyncio.gather(*(work.enqueue("scene", "k", {"job": "a"}, lane="l") for _ in range(10)))
    assert (await ended(work, "k")).state == "done"
    assert scene.made == ["a.one"]


async def test_what_is_not_known_is_said_so(open_work: OpenWork) -> None:
    work = await open_work(scene=Scene())
    with pytest.raises(NotFound, match="workflow 'nothing'"):
        await work.enqueue("nothing", "k", {}, lane="l")
    with pytest.raises(NotFound, match="job 'k'"):
        await work.wait("k")
    assert await work.get("k") is None
    assert not await work.cancel("k")


async def test_data_that_is_not_json_is_refused(open_work: OpenWork) -> None:
    work = await open_work(scene=Scene())
    with pytest.raises(TypeError):
        await work.enqueue("scene", "k", {"job": {1, 2}}, lane="l")
    with pytest.raises(ValueError, match="JSON"):
        await work.enqueue("scene", "k", {"job": float("nan")}, lane="l")
    assert await work.get("k") is None


async def test_jobs_of_a_lane_run_in_the_order_asked_for(open_work: OpenWork) -> None:
    scene = Scene("one", "two")
    work = await open_work(scene=scene)
    names = [f"{number:02}" for number in range(20, 0, -1)]
    for name in names:
        await work.enqueue("scene", name, {"job": name}, lane="l")
    await ended(work, names[-1])
    assert scene.made == [f"{name}.{step}" for name in names for step in ("one", "two")]


async def test_lanes_run_side_by_side_up_to_the_concurrency(open_work: OpenWork) -> None:
    scene = Scene("one", "two")
    names = [f"{number}" for number in range(12)]
    gates = [scene.hold(f"{name}.one") for name in names]
    work = await open_work(scene=scene, concurrency=3)
    for name in names:
        await work.enqueue("scene", name, {"job": name}, lane=name)
    assert len({await scene.next_begun() for _ in range(3)}) == 3
    for gate in gates:
        gate.set()
    for name in names:
        await ended(work, name)
    assert scene.most_at_once == 3


async def test_a_long_lane_starves_no_other(open_work: OpenWork) -> None:
    scene = Scene()
    gate = scene.hold("0.one")
    work = await open_work(scene=scene, concurrency=1)
    for number in range(30):
        await work.enqueue("scene", f"{number}", {"job": f"{number}"}, lane="long")
    await scene.next_begun()
    await work.enqueue("scene", "short", {"job": "short"}, lane="short")
    gate.set()
    await ended(work, "29")
    assert scene.made.index("short.one") < 29


async def test_a_failed_job_says_why_and_holds_up_nobody(open_work: OpenWork) -> None:
    async def fail(steps: Steps, data: Json) -> Json:
        raise NotFound(what="tea", id="green")

    work = await open_work(fail=fail, scene=Scene())
    await work.enqueue("fail", "bad", {}, lane="l")
    await work.enqueue("scene", "good", {"job": "a"}, lane="l")
    assert await ended(work, "bad") == Job("bad", "fail", "failed", error="There is no tea 'green'.")
    assert (await ended(work, "good")).state == "done"


async def test_an_error_of_a_step_reaches_the_workflow_and_the_step_may_be_tried_again(open_work: OpenWork) -> None:
    tries: list[int] = []

    async def weak() -> Json:
        tries.append(1)
        if len(tries) < 3:
            raise NotFound(what="answer", id=len(tries))
        return {"tries": len(tries)}

    async def stubborn(steps: Steps, data: Json) -> Json:
        while True:
            try:
                return await steps("weak", weak)
            except NotFound:
                await steps(f"rest {len(tries)}", lambda: answer({}))

    work = await open_work(stubborn=stubborn)
    await work.enqueue("stubborn", "k", {}, lane="l")
    assert await ended(work, "k") == Job("k", "stubborn", "done", {"tries": 3})


@pytest.mark.parametrize("value", [{"x": {1, 2}}, {"x": float("inf")}, {"x": object()}])
async def test_an_answer_that_is_not_json_fails_the_job(open_work: OpenWork, value: Json) -> None:
    async def odd_step(steps: Steps, data: Json) -> Json:
        return await steps("odd", lambda: answer(value))

    async def odd_result(steps: Steps, data: Json) -> Json:
        return value

    work = await open_work(odd_step=odd_step, odd_result=odd_result)
    for name in ("odd_step", "odd_result"):
        await work.enqueue(name, name, {}, lane=name)
        job = await ended(work, name)
        assert job.state == "failed"
        assert "JSON" in job.error


async def test_answers_come_as_they_would_after_a_crash(open_work: OpenWork) -> None:
    seen: list[Json] = []

    async def look(steps: Steps, data: Json) -> Json:
        seen.append(data)
        seen.append(await steps("look", lambda: answer({"pair": (1, 2), 3: None})))
        return {"pair": (1, 2)}

    work = await open_work(look=look)
    await work.enqueue("look", "k", {"pair": (1, 2)}, lane="l")
    assert (await ended(work, "k")).result == {"pair": [1, 2]}
    assert seen == [{"pair": [1, 2]}, {"pair": [1, 2], "3": None}]


@pytest.mark.parametrize(
    "text", ["half \ud800", "nul \x00", "🫖 茶", "x" * 3_000_000], ids=["half", "nul", "tea", "long"]
)
async def test_any_text_is_kept(open_work: OpenWork, text: str) -> None:
    async def echo(steps: Steps, data: Json) -> Json:
        return await steps("echo", lambda: answer({"text": data["text"]}))

    work = await open_work(echo=echo)
    await work.enqueue("echo", "k", {"text": text}, lane="l")
    await ended(work, "k")
    assert await work.get("k") == Job("k", "echo", "done", {"text": text})


async def test_two_steps_of_one_name_fail_the_job(open_work: OpenWork) -> None:
    async def twice(steps: Steps, data: Json) -> Json:
        await steps("same", lambda: answer({"first": 1}))
        return await steps("same", lambda: answer({"second": 2}))

    work = await open_work(twice=twice)
    await work.enqueue("twice", "k", {}, lane="l")
    assert (await ended(work, "k")).error == "Two steps of one workflow are named 'same'; number the steps of a loop."


async def test_steps_of_one_workflow_may_run_at_once(open_work: OpenWork) -> None:
    scene = Scene()

    async def spread(steps: Steps, data: Json) -> Json:
        names = ("a", "b", "c")
        gates = [scene.hold(f"job.{name}") for name in names]
        made = asyncio.gather(*(steps(name, lambda name=name: scene._act("job", name)) for name in names))  # type: ignore[misc]
        assert {await scene.next_begun() for _ in names} == {"job.a", "job.b", "job.c"}
        for gate in gates:
            gate.set()
        await made
        return {}

    work = await open_work(spread=spread)
    await work.enqueue("spread", "k", {}, lane="l")
    assert (await ended(work, "k")).state == "done"


async def test_a_step_that_gives_up_by_itself_fails_the_job(open_work: OpenWork) -> None:
    async def give_up() -> Json:
        raise asyncio.CancelledError

    async def in_a_step(steps: Steps, data: Json) -> Json:
        return await steps("give up", give_up)

    async def outside(steps: Steps, data: Json) -> Json:
        return await give_up()

    work = await open_work(in_a_step=in_a_step, outside=outside)
    for name in ("in_a_step", "outside"):
        await work.enqueue(name, name, {}, lane="l")
        job = await ended(work, name)
        assert (job.state, "cancelled from within" in job.error) == ("failed", True)


async def test_workflow_and_steps_run_on_the_loop_of_the_caller(open_work: OpenWork) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def note() -> Json:
        loops.append(asyncio.get_running_loop())
        return {}

    async def look(steps: Steps, data: Json) -> Json:
        await note()
        return await steps("note", note)

    work = await open_work(look=look)
    await work.enqueue("look", "k", {}, lane="l")
    await ended(work, "k")
    assert loops == [asyncio.get_running_loop()] * 2


async def test_a_step_may_ask_for_more_work(open_work: OpenWork) -> None:
    scene = Scene()

    async def parent(steps: Steps, data: Json) -> Json:
        async def ask() -> Json:
            await work.enqueue("scene", "child", {"job": "child"}, lane="other")
            return {"child": (await work.wait("child")).state}

        return await steps("ask", ask)

    work = await open_work(parent=parent, scene=scene)
    await work.enqueue("parent", "k", {}, lane="l")
    assert (await ended(work, "k")).result == {"child": "done"}
    assert scene.made == ["child.one"]


async def test_everybody_who_waits_is_told(open_work: OpenWork) -> None:
    scene = Scene()
    gate = scene.hold("a.one")
    work = await open_work(scene=scene)
    await work.enqueue("scene", "k", {"job": "a"}, lane="l")
    waiting = [asyncio.create_task(ended(work, "k")) for _ in range(5)]
    impatient = asyncio.create_task(work.wait("k"))
    await scene.next_begun()
    impatient.cancel()
    gate.set()
    assert {(await each).state for each in waiting} == {"done"}


async def test_a_cancelled_job_in_the_lane_never_begins(open_work: OpenWork) -> None:
    scene = Scene()
    gate = scene.hold("a.one")
    work = await open_work(scene=scene)
    for name in ("a", "b", "c"):
        await work.enqueue("scene", name, {"job": name}, lane="l")
    await scene.next_begun()
    waiting = asyncio.create_task(ended(work, "b"))
    assert await work.cancel("b")
    assert await waiting == Job("b", "scene", "cancelled")
    assert not await work.cancel("b")
    gate.set()
    await ended(work, "c")
    assert scene.made == ["a.one", "c.one"]
    assert await work.enqueue("scene", "b", {"job": "b"}, lane="l") == Job("b", "scene", "cancelled")


async def test_a_cancelled_job_ends_with_the_step_at_hand_and_its_lane_waits_for_that(open_work: OpenWork) -> None:
    scene = Scene("one", "two")
    gate = scene.hold("a.one")
    work = await open_work(scene=scene)
    await work.enqueue("scene", "a", {"job": "a"}, lane="l")
    await work.enqueue("scene", "b", {"job": "b"}, lane="l")
    assert await scene.next_begun() == "a.one"
    assert await work.cancel("a")
    assert (await ended(work, "a")).state == "cancelled"
    await work.enqueue("scene", "c", {"job": "c"}, lane="m")
    await ended(work, "c")
    assert not any(each.startswith("b") for each in scene.made)
    gate.set()
    assert (await ended(work, "b")).state == "done"
    assert scene.made == ["c.one", "c.two", "a.one", "b.one", "b.two"]
    assert not await work.cancel("c")


async def test_what_was_finished_before_a_stop_is_not_made_again(open_work: OpenWork) -> None:
    scene = Scene("one", "two", "three")
    scene.hold("a.two")
    work = await open_work(scene=scene)
    for name in ("a", "b", "c"):
        await work.enqueue("scene", name, {"job": name}, lane="l")
    assert [await scene.next_begun() for _ in range(2)] == ["a.one", "a.two"]
    scene.gates.clear()
    work = await open_work(scene=scene)
    assert (await ended(work, "c")).state == "done"
    assert scene.made == [f"{name}.{step}" for name in "abc" for step in ("one", "two", "three")]


async def test_a_stop_waits_for_the_step_at_hand_and_keeps_its_answer(open_work: OpenWork) -> None:
    scene = Scene("one", "two")
    gate = scene.hold("a.one")
    work = await open_work(scene=scene)
    await work.enqueue("scene", "a", {"job": "a"}, lane="l")
    await scene.next_begun()
    closing = asyncio.create_task(work.close())
    await asyncio.sleep(0)
    gate.set()
    await closing
    assert scene.made == ["a.one"]
    work = await open_work(scene=scene)
    await ended(work, "a")
    assert scene.made == ["a.one", "a.two"]


async def test_a_failed_try_is_forgotten_and_what_came_after_it_is_not(open_work: OpenWork) -> None:
    scene, calls = Scene(), list[str]()
    scene.hold("a.last")

    async def weak() -> Json:
        calls.append("weak")
        if len(calls) == 1:
            raise NotFound(what="answer", id=1)
        return {}

    async def spare() -> Json:
        calls.append("spare")
        return {}

    async def careful(steps: Steps, data: Json) -> Json:
        with suppress(NotFound):
            await steps("weak", weak)
        await steps("spare", spare)
        return await steps("last", lambda: scene._act("a", "last"))

    work = await open_work(careful=careful)
    await work.enqueue("careful", "k", {}, lane="l")
    await scene.next_begun()
    scene.gates.clear()
    work = await open_work(careful=careful)
    assert (await ended(work, "k")).state == "done"
    assert calls == ["weak", "spare", "weak"]


async def test_a_workflow_that_changed_does_not_go_on_with_old_answers(open_work: OpenWork) -> None:
    scene = Scene("one", "two")
    scene.hold("a.two")
    work = await open_work(scene=scene)
    await work.enqueue("scene", "a", {"job": "a"}, lane="l")
    await work.enqueue("scene", "b", {"job": "b"}, lane="l")
    assert [await scene.next_begun() for _ in range(2)] == ["a.one", "a.two"]
    scene.gates.clear()
    work = await open_work(scene=scene, version=2)
    job = await ended(work, "a")
    assert (job.state, job.error) == (
        "failed",
        "The workflow 'scene' changed (version 1, now 2) after steps were finished.",
    )
    assert (await ended(work, "b")).state == "done"
    assert scene.made == ["a.one", "b.one", "b.two"]


async def test_a_job_of_a_workflow_that_is_gone_fails(open_work: OpenWork) -> None:
    scene = Scene()
    scene.hold("a.one")
    work = await open_work(scene=scene)
    await work.enqueue("scene", "a", {"job": "a"}, lane="l")
    await scene.next_begun()
    work = await open_work(other=Scene())
    assert await ended(work, "a") == Job("a", "scene", "failed", error="This Reflexio has no workflow 'scene'.")


async def test_old_jobs_are_forgotten_and_unfinished_ones_are_not(open_work: OpenWork) -> None:
    scene = Scene()
    scene.hold("c.one")
    work = await open_work(scene=scene)
    for name in ("a", "b", "c"):
        await work.enqueue("scene", name, {"job": name}, lane=name)
    await ended(work, "a")
    await ended(work, "b")
    now = SystemClock().now()
    assert await work.forget(now - 3600) == 0
    assert await work.forget(now + 3600) == 2
    assert await work.get("a") is None
    job = await work.get("c")
    assert job is not None
    assert job.state == "running"
    await work.enqueue("scene", "a", {"job": "a"}, lane="a")
    assert (await ended(work, "a")).state == "done"


async def test_what_is_asked_for_during_the_start_is_done_after_it(open_work: OpenWork) -> None:
    scene = Scene()
    work = await open_work(scene=scene, starts=False)
    asking = asyncio.create_task(work.enqueue("scene", "a", {"job": "a"}, lane="l"))
    await asyncio.sleep(0)
    await work.start()
    await asking
    assert (await ended(work, "a")).state == "done"


async def test_a_start_that_is_given_up_is_closed_all_the_same(open_work: OpenWork) -> None:
    work = await open_work(scene=Scene(), starts=False)
    starting = asyncio.create_task(work.start())
    await asyncio.sleep(0)
    starting.cancel()
    await work.close()
    work = await open_work(scene=Scene())
    await work.enqueue("scene", "a", {"job": "a"}, lane="l")
    assert (await ended(work, "a")).state == "done"


async def test_who_waits_is_told_of_the_close(open_work: OpenWork) -> None:
    scene = Scene()
    scene.hold("a.one")
    work = await open_work(scene=scene)
    await work.enqueue("scene", "a", {"job": "a"}, lane="l")
    waiting = [asyncio.create_task(ended(work, "a")) for _ in range(2)]
    await scene.next_begun()
    await work.close()
    for each in waiting:
        with pytest.raises(StorageUnavailable, match="closed"):
            await each


async def test_closing_twice_is_closing_once(open_work: OpenWork) -> None:
    work = await open_work()
    await work.close()
    await work.close()
