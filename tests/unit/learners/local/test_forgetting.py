"""Requests to forget."""

import pytest

from reflexio.models.learning import Kind
from tests.unit.learners.local.talk import assert_grounded, learned, talk

FORGET = {
    "Forget that I'm vegetarian.": "The user is vegetarian",
    "Please forget my address.": "The user's address",
    "Can you forget what I told you about my job?": "The user's job",
    "Delete what you know about my health.": "The user's health",
    "Delete everything you know about my dog, please.": "The user's dog",
    "Remove my birthday from your memory.": "The user's birthday",
    "Please don't remember my salary.": "The user's salary",
    "Stop storing my location.": "The user's location",
    "Forget everything about me.": "everything about the user",
    "Forget the rule about tables.": "The rule about tables",
    "Vergiss, dass ich in Bonn wohne.": "ich in Bonn wohne",
}


@pytest.mark.parametrize(("said", "what"), FORGET.items(), ids=FORGET)
async def test_a_request_to_forget_names_what(said: str, what: str) -> None:
    turns = talk("Hello", "Hello!", said)
    found = await learned(turns)
    assert {(each.kind, each.forget, each.content) for each in found} == {
        (Kind.PROFILE, True, what),
        (Kind.USER_PLAYBOOK, True, what),
    }
    assert_grounded(found, turns)
