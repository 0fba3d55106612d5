import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from reflexio.client import background
from reflexio.client.background import Background


def test_callers_who_come_first_at_once_share_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    second = threading.Event()

    class SlowPool(ThreadPoolExecutor):
        def __init__(self, *args: Any, **more: Any) -> None:
            made.append(self)
            # The first waits for a second one, which must not come.
            if len(made) > 1:
                second.set()
            second.wait(0.05)
            super().__init__(*args, **more)

    monkeypatch.setattr(background, "ThreadPoolExecutor", SlowPool)
    background_calls = Background(None)
    done: list[int] = []
    callers = [
        threading.Thread(target=background_calls.start, args=(lambda number=number: done.append(number),))
        for number in range(8)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    background_calls.flush()
    assert len(made) == 1
    assert sorted(done) == list(range(8))


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
