import logging
from pathlib import Path

import httpx
import pytest

from reflexio.server.app import create_app
from reflexio.settings import Settings


async def test_an_internal_error_is_logged_under_the_request_id_of_the_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(Settings(data=tmp_path))

    @app.get("/health/live/broken")
    async def broken() -> None:
        raise ZeroDivisionError

    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport) as http:
        with caplog.at_level(logging.ERROR, "reflexio.server"):
            answer = await http.get("http://127.0.0.1/health/live/broken", headers={"X-Request-ID": "mine-42"})
    assert answer.status_code == 500
    assert answer.json()["request_id"] == answer.headers["X-Request-ID"] == "mine-42"
    assert "mine-42" in caplog.text


async def test_an_internal_error_in_a_direct_route_is_logged_under_the_request_id(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("reflexio.interactions.publish.publish", broken)
    app = create_app(Settings(data=tmp_path))
    transport = httpx.ASGITransport(app)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport) as http:
        with caplog.at_level(logging.ERROR, "reflexio.server"):
            answer = await http.post(
                "http://127.0.0.1/api/publish_interaction",
                json={"user_id": "ann", "interaction_data_list": [{"content": "x"}]},
                headers={"X-Request-ID": "mine-43"},
            )
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["request_id"] == answer.headers["X-Request-ID"] == "mine-43"
    assert "mine-43" in caplog.text
    assert "ZeroDivisionError" in caplog.text
