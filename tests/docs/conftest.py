"""A real server for the examples, on a database of its own, with a scripted model server behind its pass-through."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reflexio.server.process import running_server
from tests.model_server import json_answer, model_server, said


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    with model_server() as model:
        model.answer = lambda call: [json_answer(said("Try the lentil soup."))]
        with running_server(tmp_path / "data", {"REFLEXIO_GATEWAY_URL": model.url}) as url:
            yield url
