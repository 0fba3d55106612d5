"""Attempts: a tool that failed and then worked, an answer confirmed after another failed, a request made again."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from reflexio.models.extraction import RecordedToolCall, Turn
from reflexio.ports.embedding import Embedder
from reflexio.providers.embedding.local import LocalEmbedder
from tests.unit.learners.local.talk import assert_grounded, learned, talk


def called(turn_id: int, status: str = "", *, is_new: bool = True, tool: str = "search_flights", **data: Any) -> Turn:
    return Turn(turn_id, "agent", tools=(RecordedToolCall(tool, data, status),), is_new=is_new)


ASKED = Turn(1, "user", "Find me a flight to Oslo on May 20th.")
FAILED = [
    called(2, "error", input={"to": "OSL", "date": "20 May"}, output="Date must be YYYY-MM-DD"),
    called(2, input={"to": "OSL", "date": "20 May"}, error="Date must be YYYY-MM-DD"),
    called(2, to="OSL", date="20 May", result="Error: Date must be YYYY-MM-DD"),
    called(2, "failed", tool_input='{"to": "OSL", "date": "20 May"}', output="Date must be YYYY-MM-DD"),
]


@pytest.mark.parametrize("failed", FAILED)
async def test_what_differed_between_a_failed_call_and_one_that_worked_is_learned(failed: Turn) -> None:
    turns = [ASKED, failed, called(3, "success", input={"to": "OSL", "date": "2024-05-20"}, output=["SK12"])]
    (found,) = await learned(turns)
    assert found.content.startswith("Call search_flights with date as YYYY-MM-DD.")
    assert "Date must be YYYY-MM-DD" in found.content
    assert "to=" not in found.content
    assert found.trigger == "The agent calls search_flights after: The user asks to find them a flight"
    assert_grounded([found], turns)


FORMS = [
    ({"code": "welcome10"}, {"code": "WELCOME10"}, "with code in upper case"),
    ({"country": "DE"}, {"country": "de"}, "with country in lower case"),
    ({"customer": "4711"}, {"customer": "C-4711"}, 'with customer beginning with "C-"'),
    ({"phone": "0171 23-45"}, {"phone": "01712345"}, "with phone without spaces or other separators"),
    (
        {"sql": "select count(*) from accounts where plan = 'paid'"},
        {"sql": "select count(*) from app.accounts where plan = 'paid'"},
        "with app.accounts instead of accounts in sql",
    ),
    ({"at": "4 pm"}, {"at": "16:00"}, "with at as HH:MM"),
]


@pytest.mark.parametrize(("before", "after", "difference"), FORMS)
async def test_another_form_of_a_value_is_named_without_the_value(
    before: dict[str, Any], after: dict[str, Any], difference: str
) -> None:
    turns = [ASKED, called(2, "error: bad value", **before), called(3, "ok", **after)]
    (found,) = await learned(turns)
    assert found.content == f"Call search_flights {difference}. Otherwise it fails: error: bad value"
    assert_grounded([found], turns)


async def test_the_lesson_of_a_call_names_what_the_user_named() -> None:
    asked = Turn(1, "user", "can I get it on the 12th of May instead")
    failed = called(2, "error: date must be YYYY-MM-DD", tool="find_slot", date="12 May")
    (found,) = await learned([asked, failed, called(3, "ok", tool="find_slot", date="2026-05-12")])
    assert found.trigger == "The user names a date or a day, and the agent calls find_slot"


async def test_an_argument_added_or_left_out_is_named() -> None:
    turns = [ASKED, called(2, "error", input={"a": 1}), called(3, "ok", input={"b": 2})]
    (found,) = await learned(turns)
    assert "without a; with b=2" in found.content


@pytest.mark.parametrize(
    ("before", "after", "difference"),
    [
        ({"id": "77"}, {"id": 77}, "with id as a number, not as text"),
        ({"input": {"id": "77"}}, {"input": {"id": 77}}, "with id as a number, not as text"),
        ({"urgent": "True"}, {"urgent": True}, "with urgent as a boolean, not as text"),
        ({"count": 2}, {"count": "2"}, "with count as text, not as a number"),
    ],
)
async def test_another_type_of_the_same_value_is_named_without_the_value(
    before: dict[str, Any], after: dict[str, Any], difference: str
) -> None:
    turns = [ASKED, called(2, "error: wrong type", **before), called(3, "ok", **after)]
    (found,) = await learned(turns)
    assert found.content == f"Call search_flights {difference}. Otherwise it fails: error: wrong type"
    assert_grounded([found], turns)


@pytest.mark.parametrize(
    "turns",
    [
        [called(2, "error", id="call_1", a=1), called(3, "ok", id="call_2", a=1)],
        [called(2, "error", input={"a": 1}), called(3, "ok", input={"a": 1})],
        [called(2, "ok", input={"a": 1}), called(3, "error", input={"a": 2})],
        [called(2, "error", input={"a": 1}), called(3, "ok", tool="other", input={"a": 2})],
        [called(2, "error", input={"a": 1})],
        [called(2, "ok", input={"a": 1}, result="No errors found"), called(3, "ok", input={"a": 2})],
        [called(2, "error", input={"a": 1}, is_new=False), called(3, "ok", input={"a": 2}, is_new=False)],
    ],
    ids=[
        "another id of the call",
        "same call again",
        "worked first",
        "another tool",
        "never worked",
        "no error",
        "learned already",
    ],
)
async def test_other_tool_calls_teach_nothing(turns: list[Turn]) -> None:
    assert await learned(turns) == ()


async def test_the_answer_that_worked_after_another_had_failed() -> None:
    turns = talk(
        "How do I stop the printer from jamming?",
        "Clean the glass plate.",
        "It still jams, that didn't work.",
        "Open the rear tray and remove the torn sheet behind the roller.",
        "Perfect, that worked!",
    )
    (found,) = await learned(turns)
    assert found.trigger == "The user asks how to stop the printer from jamming"
    assert found.content == (
        "Do what worked: Open the rear tray and remove the torn sheet behind the roller. "
        "Not what had failed before: Clean the glass plate."
    )
    assert "after an earlier answer had failed" in found.rationale
    assert_grounded([found], turns)


CONFIRMED = [
    (
        "How do I reset my password?",
        "To reset your password, go to Settings > Security.",
        "Perfect, that worked! Thanks!",
    ),
    ("My parcel never arrived", "Check the front desk of the building, please.", "Found it! Thank you so much!"),
    ("The app crashes on start.", "Delete the cache folder and restart.", "Great, that fixed it."),
]


@pytest.mark.parametrize("said", CONFIRMED)
async def test_an_answer_the_user_says_worked(said: tuple[str, ...]) -> None:
    (found,) = await learned(talk(*said))
    assert found.metadata == {"signal": "confirmation"}
    assert said[1] in found.content


async def test_what_worked_goes_back_to_what_was_asked_for() -> None:
    (found,) = await learned(
        talk(
            "I need help with my order #12345",
            "I'd be happy to help. Let me look that up for you.",
            "It says delivered but I never received it",
            "Can you confirm your delivery address?",
            "123 Main St, Apt 4B",
            "The package was left at the building's front desk. Could you check there?",
            "Found it! Thank you so much for your help!",
        )
    )
    assert found.trigger == "The user needs help with their order"
    assert found.content.startswith("Do what worked: The package was left at the building's front desk.")


@pytest.mark.parametrize(
    "said",
    [
        ("How do I reset it?", "Go to Settings.", "Perfect, thanks!"),
        ("How do I reset it?", "Go to Settings.", "I hope that worked."),
        ("How do I reset it?", "Go to Settings.", "It worked before, but now it fails."),
        ("Tell me a joke.", "A horse walks into a bar.", "Haha, that worked on me!"),
    ],
)
async def test_courtesy_and_hope_confirm_nothing(said: tuple[str, ...]) -> None:
    assert await learned(talk(*said)) == ()


@pytest.fixture
async def embedder() -> AsyncIterator[Embedder]:
    embedder = LocalEmbedder()
    yield embedder
    await embedder.aclose()


REPEATED = [
    (
        "How do I export my contacts as CSV?",
        "You can import contacts in Settings.",
        "How can I export my contacts as a CSV file?",
    ),
    (
        "What is the fee for international transfers?",
        "Transfers are easy!",
        "Again: what is the fee for international transfers?",
    ),
    (
        "Which trains to Bern run on Sunday?",
        "Trains to Basel run daily.",
        "I asked which trains to Bern run on Sunday.",
    ),
]


@pytest.mark.parametrize("said", REPEATED)
async def test_a_request_made_again_says_that_the_answer_missed_it(said: tuple[str, ...], embedder: Embedder) -> None:
    turns = talk(*said)
    (found,) = await learned(turns, embedder=embedder)
    assert found.trigger.startswith("The user asks")
    assert found.metadata["signal"] in {"repetition", "instruction"}
    assert_grounded([found], turns)


@pytest.mark.parametrize(
    "said",
    [
        ("What is the capital of Peru?", "Lima.", "What is the capital of Chile?"),
        ("What is the fee for transfers?", "Two euros.", "And how long do transfers take?"),
        ("Is the shop open on Sunday?", "Yes.", "Is the café open on Monday?"),
    ],
)
async def test_another_question_of_the_same_kind_is_no_repetition(said: tuple[str, ...], embedder: Embedder) -> None:
    assert await learned(talk(*said), embedder=embedder) == ()
