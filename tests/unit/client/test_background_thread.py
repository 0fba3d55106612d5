import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from reflexio.client import background
from reflexio.client.background import Background


def test_callers_who_come_first_at_once_share_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(8)

    class SlowPool(ThreadPoolExecutor):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            # All callers make one, and one of them is used.
            together.wait(30)

    monkeypatch.setattr(background, "ThreadPoolExecutor", SlowPool)
    background_calls = Background(None)
    done: list[tuple[int, str]] = []

    def call(number: int) -> None:
        done.append((number, threading.current_thread().name))

    callers = [
        threading.Thread(target=background_calls.start, args=(lambda number=number: call(number),))
        for number in range(8)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    background_calls.flush()
    assert sorted(number for number, _ in done) == list(range(8))
    assert len({name for _, name in done}) == 1


def test_what_fails_is_told_and_the_next_call_still_runs() -> None:
    told: list[Exception] = []
    done: list[str] = []
    calls = Background(told.append)

    def fail() -> None:
        raise ValueError("no")

    calls.start(fail)
    calls.start(lambda: done.append("yes"))
    calls.flush()
    assert [str(error) for error in told] == ["no"]
    assert done == ["yes"]
