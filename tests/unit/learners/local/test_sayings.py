"""Sentences that people said to an agent, and what is to be learned from them: triggers, changed minds, forms."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from reflexio.language.contradiction import replacement
from reflexio.models.extraction import RecordedToolCall, Turn
from reflexio.ports.embedding import Embedder
from reflexio.providers.embedding.local import LocalEmbedder
from tests.bench.sayings import Memory
from tests.unit.learners.local.talk import assert_grounded, learned, talk

PARCEL = "My parcel is marked delivered but there is nothing here.", "I am sorry. I have started a refund."


@pytest.fixture
async def embedder() -> AsyncIterator[Embedder]:
    embedder = LocalEmbedder()
    yield embedder
    await embedder.aclose()


async def test_a_request_of_another_session_is_no_trigger() -> None:
    lamp = [replace(turn, session="one") for turn in talk("How do I dim the lamp?", "Hold the button.")]
    order = Turn(3, "user", "No, check with the neighbours first.", session="two")
    assert await learned([*lamp, order]) == ()
    (found,) = await learned([*lamp, replace(order, session="one")])
    assert found.trigger == "The user asks how to dim the lamp"


@pytest.mark.parametrize(
    "said",
    [
        ("Please never use emojis.",),
        ("always answer in bullet points",),
        ("How do I dim the lamp?", "Hold the button.", "Please never use emojis."),
        ("How do I dim the lamp?", "Hold the button.", "By the way, never book anything on Fridays."),
        ("Always ask before refunding.",),
    ],
)
async def test_a_standing_order_has_no_trigger(said: tuple[str, ...]) -> None:
    (found,) = await learned(talk(*said))
    assert found.trigger == ""


@pytest.mark.parametrize(
    ("request_", "trigger"),
    [
        ("Order 1857.", None),
        ("Where was I?", None),
        ("My order number is 1857.", None),
        ("Please refund order 1857 for Tom.", "The user asks to refund the order"),
        ("How much is the flight to Oslo on May 20th?", "The user asks: how much is the flight"),
        ("Email anna@example.com about ticket #4711", "The user says: Email about the ticket"),
        ("Translate the letter into German", "The user asks to translate the letter into German"),
    ],
)
async def test_what_belongs_to_one_case_does_not_stand_in_a_trigger(request_: str, trigger: str | None) -> None:
    found = await learned(talk(request_, "Done.", "No, check with the neighbours first."))
    assert [each.trigger for each in found] == ([] if trigger is None else [trigger])


async def test_an_identifier_does_not_stand_in_an_instruction() -> None:
    (found,) = await learned(talk("Where is it?", "On its way.", "No, always call find_orders with customer_id=4711."))
    assert found.content == "Always call find_orders with the customer_id."


async def test_the_identifiers_of_a_tool_call_do_not_stand_in_its_lesson() -> None:
    turns = [
        Turn(1, "user", "Find my order 99812, please."),
        Turn(2, "agent", tools=(RecordedToolCall("search_orders", {"customer": "4711", "limit": 900}, "error"),)),
        Turn(3, "agent", tools=(RecordedToolCall("search_orders", {"customer_id": "4711", "limit": 50}, "ok"),)),
    ]
    (found,) = await learned(turns)
    assert "limit=50, not 900" in found.content
    assert not any(number in found.text for number in ("4711", "99812"))


@pytest.mark.parametrize("said", ["Please do it like this every time!", "Order 1857.", "Where was I?"])
async def test_what_says_nothing_teaches_nothing(said: str) -> None:
    assert await learned(talk(*PARCEL, said)) == ()


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("Check with my neighbours first.", "Check with the user's neighbours first."),
        ("Use POST instead of GET.", "Use POST instead of GET."),
        ("Why didn't you ask the neighbours first?", "Ask the neighbours first."),
        ("I wish you had asked the neighbours first", "Ask the neighbours first."),
        ("u shouldve checked with the neighbours", "Check with the neighbours."),
        ("before refunding, ask the neighbours", "Ask the neighbours before refunding."),
    ],
)
async def test_a_correction_has_many_forms(said: str, content: str) -> None:
    turns = talk(*PARCEL, said)
    (found,) = await learned(turns)
    assert found.content == content
    names_its_case = said.startswith("before")
    assert found.trigger.startswith("The agent refunds" if names_its_case else "The user's parcel is marked delivered")
    assert_grounded([found], turns)


async def test_both_halves_of_a_correction_are_kept() -> None:
    found = await learned(talk(*PARCEL, "don't refund right away. Check with my neighbours first."))
    assert {each.content for each in found} == {"Don't refund right away.", "Check with the user's neighbours first."}


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("I'd rather get emails than phone calls", ["The user would rather get emails than phone calls."]),
        ("I need wheelchair access.", ["The user needs wheelchair access."]),
        ("im vegan and i dont eat honey", ["The user doesn't eat honey.", "The user is vegan."]),
        ("I sometimes miss calls because I work nights.", ["The user works nights."]),
        ("I prefer online courses and live sessions.", ["The user prefers online courses and live sessions."]),
        (
            "I live in Berlin and work at a bakery.",
            ["The user lives in Berlin.", "The user works at a bakery."],
        ),
        (
            "I'm Ana, I live in Porto, I'm vegetarian, I have two kids, I work as a nurse, I prefer emails "
            "and my budget is 200 euros.",
            [
                "The user has two kids.",
                "The user is Ana.",
                "The user is vegetarian.",
                "The user lives in Porto.",
                "The user prefers emails.",
                "The user works as a nurse.",
                "The user's budget is 200 euros.",
            ],
        ),
    ],
)
async def test_all_clear_facts_are_told_in_good_grammar(said: str, facts: list[str]) -> None:
    assert sorted(each.content for each in await learned(talk(said))) == facts


CHANGED = [
    ("I'm vegetarian.", "I'm not vegetarian anymore.", ["The user is no longer vegetarian."]),
    ("My budget is 200 euros.", "Actually my budget is 300.", ["The user's budget is 300."]),
    ("Please call me Bob.", "Please call me Robert.", ["Please call the user Robert."]),
    ("Please never use emojis.", "Emojis are fine now.", ["Emojis are fine."]),
    ("Please answer in German.", "In English please.", ["Answer in English."]),
    ("I live in Lisbon.", "I moved to Porto.", ["The user moved to Porto."]),
]


@pytest.mark.parametrize(("before", "after", "holds"), CHANGED, ids=[after for _, after, _ in CHANGED])
async def test_a_changed_mind_between_sessions(before: str, after: str, holds: list[str], embedder: Embedder) -> None:
    memory = Memory(embedder)
    await memory.take(before, session="one")
    await memory.take(after, session="two")
    assert [row.content for row in memory.rows] == holds


@pytest.mark.parametrize(("before", "after", "holds"), CHANGED, ids=[after for _, after, _ in CHANGED])
async def test_a_changed_mind_within_one_window(before: str, after: str, holds: list[str], embedder: Embedder) -> None:
    memory = Memory(embedder)
    await memory.take(before, "Noted.", after, session="one")
    # Where nothing is stored, nothing is taken back.
    assert [row.content for row in memory.rows] == ([] if "fine" in after else holds)


async def test_a_corrected_correction_replaces_the_first(embedder: Embedder) -> None:
    memory = Memory(embedder)
    for seconds in ("30", "60"):
        said = "How do I call the API?", "Like this.", f"No, set the timeout to {seconds} seconds."
        await memory.take(*said, session=seconds)
    assert [row.content for row in memory.rows] == ["Set the timeout to 60 seconds."]


async def test_what_is_permitted_is_not_kept_when_nothing_forbade_it(embedder: Embedder) -> None:
    memory = Memory(embedder)
    await memory.take("Emojis are fine now.", session="one")
    assert memory.rows == []


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("The user's daughter Lena is 7 years old.", "The user's daughter Mia is 5 years old."),
        ("The user's budget for the laptop is 900 euros.", "The user's budget for the phone is 300 euros."),
        ("The user works in Munich.", "The user lives in Berlin."),
        ("The user lives in a small flat.", "The user lives in Berlin."),
        ("The user lives in Hamburg on weekends.", "The user lives in Berlin during the week."),
        ("The user lives in Portugal.", "The user lives in Lisbon."),
    ],
)
def test_different_things_stay_side_by_side(newer: str, older: str) -> None:
    assert replacement(newer, older, 0.9) == ""


def test_the_reason_of_a_replacement_names_no_value() -> None:
    reason = replacement("The user's budget is 300 euros.", "The user's budget is 200 euros.", 0.9)
    assert reason
    assert not any(character.isdigit() for character in reason)
