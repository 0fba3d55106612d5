"""What a caller chose cannot forge a line of the log, and no response shows where the database is."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from reflexio import errors
from reflexio.server.log import REQUEST_ID, TRACE, JsonFormatter, install
from reflexio.server.problems import as_problem
from reflexio.settings import Settings

FORGED = "ann\n2026-01-01 ERROR all keys were revoked\r\x1b[31m\u202e\U000e0041\x85\u2028end"


@pytest.fixture
def _installed() -> Iterator[None]:
    before = logging.getLogRecordFactory()
    install(Settings())
    yield
    logging.setLogRecordFactory(before)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    formatter = logging.Formatter("%(levelname)s %(message)s")
    return "\n".join(formatter.format(record) for record in caplog.records).split("\n")


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize(
    "arguments",
    [("user %s", FORGED), ("user %r", FORGED), ("%s", ValueError(FORGED)), (FORGED,), ("%(user)s", {"user": FORGED})],
)
def test_a_message_stays_one_line_without_hidden_characters(
    caplog: pytest.LogCaptureFixture, arguments: tuple[object, ...]
) -> None:
    with caplog.at_level(logging.WARNING, "reflexio"):
        logging.getLogger("reflexio").warning(*arguments)
    (line,) = lines(caplog)
    assert line.isprintable()
    assert "ann" in line
    assert "all keys were revoked" in line


@pytest.mark.usefixtures("_installed")
def test_a_line_of_a_traceback_cannot_be_mistaken_for_one_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "reflexio"):
        try:
            raise ValueError(FORGED)
        except ValueError:
            logging.getLogger("reflexio").exception("failed for %s", "ann")
    first, *others = lines(caplog)
    assert first == "ERROR failed for ann"
    assert all(line.startswith(TRACE) and line.isprintable() for line in others)
    assert "all keys were revoked" in "".join(others)


@pytest.mark.parametrize(
    "error",
    [
        errors.StorageReadOnly("[Errno 13] '/srv/secret/data'", path="/srv/secret/data/reflexio.db"),
        errors.StorageTaken(path="/srv/secret/data"),
        errors.StorageFull(path="/srv/secret/data/reflexio.db"),
        errors.StorageCorrupt("file /srv/secret is damaged", path="/srv/secret/data/reflexio.db"),
        errors.StorageNewer(path="/srv/secret/data/reflexio.db", found="9", known="2"),
        errors.StorageUnavailable("unable to open /srv/secret/data/reflexio.db"),
    ],
)
def test_no_error_shows_a_path(error: errors.StorageUnavailable) -> None:
    assert b"secret" not in bytes(as_problem(error, "1").body)
    assert b"/srv" not in bytes(as_problem(error, "1").body)


async def test_no_route_shows_where_the_database_is(http: httpx.AsyncClient, tmp_path: Path) -> None:
    published = await http.post(
        "/api/publish_interaction", json={"user_id": "ann", "interaction_data_list": [{"content": "Tea, please."}]}
    )
    assert published.is_success
    for path in ("/", "/health", "/health/ready", "/api/whoami", "/api/storage_stats?user_id=ann", "/api/get_config"):
        answer = await http.get(path)
        assert answer.is_success, path
        assert str(tmp_path) not in answer.text
    assert str(tmp_path) not in published.text


@pytest.mark.usefixtures("_installed")
def test_a_line_of_json_cannot_be_forged_and_takes_any_text(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "reflexio"):
        try:
            raise ValueError(FORGED)
        except ValueError:
            logging.getLogger("reflexio").exception("failed")
    formatter = JsonFormatter()
    (second,) = caplog.records
    # Not logged: the report of a test that shows half a letter cannot be sent to another process.
    words = FORGED + "\ud800"
    first = logging.getLogRecordFactory()("reflexio", logging.WARNING, __file__, 1, "user %s", (words,), None)
    line = formatter.format(first)
    assert line.isascii()
    assert "\n" not in line
    assert json.loads(line).keys() == {"time", "level", "logger", "message"}
    token = REQUEST_ID.set("mine-9")
    entry = json.loads(formatter.format(second))
    REQUEST_ID.reset(token)
    assert (entry["level"], entry["request_id"]) == ("error", "mine-9")
    assert "ValueError" in entry["exception"]
