"""Cookies and tokens that nobody can make without the digest of a key."""

import pytest

from reflexio.dashboard.sessions import LASTS, BrowserSession, Visitor
from reflexio.models.access import Caller

DIGEST, OTHER = "a" * 64, "b" * 64
NOW = 1_700_000_000


def read(cookie: str) -> BrowserSession:
    session = BrowserSession.read(cookie)
    assert session
    return session


def test_a_session_is_valid_until_its_end_and_only_with_its_key() -> None:
    session = read(BrowserSession.start(7, DIGEST, NOW).cookie)
    assert session.key_id == 7
    assert session.is_valid(DIGEST, NOW + LASTS - 1)
    assert not session.is_valid(DIGEST, NOW + LASTS)
    assert not session.is_valid(OTHER, NOW)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_changed_cookie_is_not_valid(place: int) -> None:
    parts = BrowserSession.start(7, DIGEST, NOW).cookie.split(".")
    parts[place] = str(int(parts[place]) + 1) if place < 2 else parts[place][::-1]
    assert not read(".".join(parts)).is_valid(DIGEST, NOW)


@pytest.mark.parametrize("cookie", ["", "7", "7.8", ".8.x", "-7.8.x", "٧.8.x", "7.1e9.x", f"{'9' * 19}.8.x", "7.8.é"])
def test_what_is_no_cookie_of_ours_opens_nothing(cookie: str) -> None:
    session = BrowserSession.read(cookie)
    assert session is None or not session.is_valid(DIGEST, 1)


def test_forms_of_another_session_and_messages_of_others_are_not_taken() -> None:
    first, second = BrowserSession.start(7, DIGEST, NOW), BrowserSession.start(7, DIGEST, NOW + 1)
    mine, other = (Visitor(Caller("org"), session.secret(DIGEST)) for session in (first, second))
    assert mine.is_own_token(mine.form_token)
    assert not mine.is_own_token(other.form_token)
    assert not mine.is_own_token("")
    assert mine.read_message(mine.sign_message("Saved. Done.")) == "Saved. Done."
    assert mine.read_message(other.sign_message("Send us your key")) == ""
    assert mine.read_message("Send us your key") == ""
