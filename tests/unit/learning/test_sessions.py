"""Which turns are one talk."""

import pytest

from reflexio.learning.window import SAME_TALK_SECONDS, joined_sessions
from reflexio.models.identity import is_generated_session, new_session
from reflexio.models.interaction import Interaction


def turn(request: str, at: int) -> Interaction:
    return Interaction(user_id="ann", request_id=request, role="User", content="Hi", created_at=at)


def test_publishes_without_a_session_that_follow_each_other_soon_are_one_talk() -> None:
    sessions = {name: new_session() for name in "abc"}
    turns = [turn("a", 0), turn("b", SAME_TALK_SECONDS), turn("c", 2 * SAME_TALK_SECONDS + 1)]
    joined = joined_sessions(turns, sessions)
    assert joined == {"a": sessions["a"], "b": sessions["a"], "c": sessions["c"]}


def test_named_sessions_stay_apart() -> None:
    sessions = {"a": "monday", "b": "tuesday", "c": new_session()}
    assert joined_sessions([turn("a", 0), turn("b", 1), turn("c", 2)], sessions) == sessions


@pytest.mark.parametrize("name", ["session-1", "session-", "monday", "session-of-ann"])
def test_a_name_of_the_caller_is_not_generated(name: str) -> None:
    assert not is_generated_session(name)
