from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from reflexio.server.app import create_app
from reflexio.settings import Settings

JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def http(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(Settings(data=tmp_path, max_body_bytes=1000))
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=JSON) as client:
            yield client


async def _in_parts(parts: int) -> AsyncIterator[bytes]:
    yield b'{"user_id": "amira", "interaction_data_list": [{"content": "'
    for _ in range(parts):
        yield b"x" * 100
    yield b'"}]}'


async def test_a_large_body_without_a_length_is_too_large(http: httpx.AsyncClient) -> None:
    answer = await http.post("/api/publish_interaction", content=_in_parts(10))
    assert answer.status_code == 413
    assert "REFLEXIO_MAX_BODY_BYTES" in answer.json()["detail"]


async def test_a_small_body_without_a_length_is_taken(http: httpx.AsyncClient) -> None:
    answer = await http.post("/api/publish_interaction", content=_in_parts(5))
    assert answer.json()["message"] == "Stored 1 interaction(s)"
