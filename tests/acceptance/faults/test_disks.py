"""A disk that is full, read-only, failing, locked or damaged while the server writes, and again in order afterwards."""

import os
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from reflexio import errors
from reflexio.app import DATABASE
from reflexio.client.sync import ReflexioClient
from tests.acceptance.faults.conftest import StartFaulty
from tests.acceptance.faults.faulty import FaultyServer, broken_findings
from tests.builders import eventually, every_turn, turns

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("faults")]

LONG = "parcel " * 12_000
USER = "ann"
MOST = 400


def connect(server: FaultyServer) -> ReflexioClient:
    return ReflexioClient(url_endpoint=server.url, retries=0)


def publish_until_refused(client: ReflexioClient) -> tuple[set[str], errors.ReflexioError]:
    """The requests that were answered, and the error of the first one that was not."""
    answered: set[str] = set()
    for number in range(MOST):
        try:
            answer = client.publish_interaction(USER, turns(f"{number} {LONG}"), idempotency_key=f"key-{number}")
        except errors.ReflexioError as error:
            return answered, error
        answered.add(answer.request_id or "")
    raise AssertionError("the fault did not show")


def stored(client: ReflexioClient) -> set[str]:
    return {turn.request_id for turn in every_turn(client, USER, top_k=20)}


def check_recovered(server: FaultyServer, client: ReflexioClient, answered: set[str]) -> None:
    """Everything that was answered is there, writing goes on without a restart, and nothing is damaged."""
    assert answered <= stored(client)
    number = len(answered)
    again = client.publish_interaction(USER, turns(f"{number} {LONG}"), idempotency_key=f"key-{number}")
    assert stored(client) == {*answered, again.request_id}
    learned = client.publish_interaction("bob", turns("My name is Bob."), wait_for_response=True)
    assert learned.learning_status == "done"
    server.end()
    assert broken_findings(server.folder) == []
    server.start()
    assert stored(client) == {*answered, again.request_id}


def mount(*words: str) -> None:
    done = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a small file system needs the rights to mount one: {done.stderr.strip()}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 12 MiB."""
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("a small file system needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount("-t", "tmpfs", "-o", "size=12m,mode=700", "tmpfs", str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)


def test_a_full_disk_refuses_and_goes_on_when_there_is_space(faulty: StartFaulty, small_disk: Path) -> None:
    server = faulty(small_disk)
    with connect(server) as client:
        answered, error = publish_until_refused(client)
        assert "free some space" in str(error)
        assert str(small_disk) not in str(error)
        assert stored(client) == answered
        mount("-o", "remount,size=8g", str(small_disk))
        check_recovered(server, client, answered)


def test_a_full_disk_at_a_crash_loses_nothing(faulty: StartFaulty, small_disk: Path) -> None:
    server = faulty(small_disk)
    with connect(server) as client:
        answered, _ = publish_until_refused(client)
        server.end()
        # With not a byte left, the log of the dead process is all that there is.
        with suppress(OSError), (small_disk / "rest").open("wb") as rest:
            while True:
                rest.write(b"x" * 65_536)
                rest.flush()
        mount("-o", "remount,size=8g", str(small_disk))
        (small_disk / "rest").unlink()
        server.start()
        check_recovered(server, client, answered)


def test_a_server_that_finds_the_disk_full_says_so(faulty: StartFaulty, small_disk: Path) -> None:
    server = faulty(small_disk)
    with connect(server) as client:
        client.publish_interaction(USER, turns())
    server.end()
    with suppress(OSError), (small_disk / "rest").open("wb") as rest:
        while True:
            rest.write(b"x" * 4096)
            rest.flush()
    server.start()
    with suppress(errors.ReflexioError), connect(server) as client:
        assert len(every_turn(client, USER)) == 2
    server.end()
    (small_disk / "rest").unlink()
    server.start()
    with connect(server) as client:
        assert len(every_turn(client, USER)) == 2


def test_a_file_that_may_not_grow_is_an_error_and_no_loss(faulty: StartFaulty) -> None:
    server = faulty(file_megabytes=3)
    with connect(server) as client:
        answered, error = publish_until_refused(client)
        assert "nothing was stored partially" in str(error)
        assert str(server.folder) not in str(error)
        assert stored(client) == answered
        server.end()
        server.start()
        check_recovered(server, client, answered)


def test_a_database_that_becomes_read_only_refuses_and_goes_on_afterwards(faulty: StartFaulty) -> None:
    server = faulty(read_only_switch=True)
    with connect(server) as client:
        answered = {client.publish_interaction(USER, turns("0"), idempotency_key="key-0").request_id or ""}
        server.switch_read_only()
        with pytest.raises(errors.ServerFailed, match="write permission") as caught:
            client.publish_interaction(USER, turns("1"), idempotency_key="key-1")
        assert str(server.folder) not in str(caught.value)
        assert stored(client) == answered
        server.switch_read_only()
        check_recovered(server, client, answered)


def test_who_is_locked_out_waits_and_is_answered_once(faulty: StartFaulty) -> None:
    server = faulty()
    with connect(server) as client, closing(sqlite3.connect(server.folder / DATABASE, isolation_level=None)) as other:
        client.publish_interaction(USER, turns("before"))
        other.execute("BEGIN IMMEDIATE")
        answers: list[str] = []
        caller = threading.Thread(
            target=lambda: answers.append(client.publish_interaction(USER, turns("locked")).request_id or "")
        )
        caller.start()
        caller.join(0.3)
        assert answers == []
        assert len(every_turn(client, USER)) == 1  # readers go on
        other.execute("ROLLBACK")
        caller.join(20)
        assert len(answers) == 1
        assert len(every_turn(client, USER)) == 2


def test_a_lock_that_lasts_too_long_is_an_error_and_nothing_is_stored(faulty: StartFaulty) -> None:
    server = faulty(busy_milliseconds=200)
    with connect(server) as client, closing(sqlite3.connect(server.folder / DATABASE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(errors.ServerFailed, match="nothing was stored partially"):
            client.publish_interaction(USER, turns("locked"), idempotency_key="key-0")
        other.execute("ROLLBACK")
        check_recovered(server, client, set())


def test_a_damaged_page_is_said_and_the_rest_is_served(faulty: StartFaulty) -> None:
    server = faulty()
    with connect(server) as client:
        for number in range(30):
            client.publish_interaction(USER, turns(f"marker-{number} {LONG}"))
        client.add_user_profile([{"user_id": "bob", "content": "Likes tea"}])
        eventually(lambda: client.search("tea", user_id="bob").profiles != [])
    server.end(15)
    file = server.folder / DATABASE
    content = bytearray(file.read_bytes())
    page = content.rindex(b"marker-15 ") // 4096 * 4096
    content[page : page + 64] = b"\xff" * 64
    file.write_bytes(content)
    server.start()
    with connect(server) as client:
        with pytest.raises(errors.ServerFailed, match="restore a backup") as caught:
            every_turn(client, USER)
        assert str(server.folder) not in str(caught.value)
        assert [row.content for row in client.get_profiles("bob").user_profiles] == ["Likes tea"]
    server.end()
    (finding,) = broken_findings(server.folder)
    assert (finding.part, "damaged" in finding.detail) == ("database", True)
