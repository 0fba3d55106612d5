"""The demo data set, filled once for all tests that look at it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from reflexio.cli.demo_shop.fill import fill
from tests.builders import run_apart

DEMO_GROUP = pytest.mark.xdist_group("demo")
"""Tests that use the demo data run in one process, so that it is filled once."""


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demo data. Copy it before you change something."""
    folder = tmp_path_factory.mktemp("demo")
    run_apart(fill(folder, lambda done, total: None, end=datetime.now(UTC)))
    return folder
