"""What all tests of faults start with."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.faults.faulty import FaultyServer, Launcher, launcher

StartFaulty = Callable[..., FaultyServer]


@pytest.fixture(scope="module")
def forks() -> Iterator[Launcher]:
    with launcher() as process:
        yield process


@pytest.fixture
def faulty(forks: Launcher, tmp_path: Path) -> Iterator[StartFaulty]:
    """Starts servers with faults, and ends them."""
    with ExitStack() as stack:

        def start(folder: Path = tmp_path / "data", environment: dict[str, str] | None = None, **faults: Any) -> Any:
            server = FaultyServer(forks, folder, environment or {})
            server.start(**faults)
            stack.callback(server.end)
            return server

        yield start
