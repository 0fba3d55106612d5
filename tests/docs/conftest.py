"""A real server for the examples, on a database of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reflexio.server.process import running_server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    with running_server(tmp_path / "data") as url:
        yield url
