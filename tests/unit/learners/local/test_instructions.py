"""Corrections and instructions become playbooks: a trigger from the request, an instruction that stands alone."""

from dataclasses import replace

import pytest

from reflexio.models.extraction import Turn
from reflexio.models.learning import Kind
from tests.unit.learners.local.talk import assert_grounded, learned, talk

CORRECTED = [
    (
        ("How much is the flight to Oslo?", "It is 210 dollars.", "No, always give prices in euros."),
        "Always give prices in euros.",
        "The user asks: how much is the flight",
    ),
    (
        (
            "Summarise my meeting notes.",
            "Here is a long summary …",
            "That's too long. Keep it under five bullet points.",
        ),
        "Keep it under five bullet points.",
        "The user asks to summarise their meeting notes",
    ),
    (
        ("Can you write a SQL query for sales?", "SELECT * FROM sales;", "Don't use SELECT star."),
        "Don't use SELECT star.",
        "The user asks to write a SQL query for sales",
    ),
    (
        ("How do I deploy the app?", "Run make deploy.", "That's wrong, you should run the smoke tests first."),
        "Run the smoke tests first.",
        "The user asks how to deploy the app",
    ),
    (
        ("Draft an email to my landlord.", "Hey buddy!", "No. It should be formal and signed with my full name."),
        "The answer should be formal and signed with the user's full name.",
        "The user asks to draft an email to their landlord",
    ),
    (
        ("Book a table for two.", "Booked at 18:00.", "I told you to book after eight."),
        "Book after eight.",
        "The user asks to book a table for two",
    ),
    (
        ("Convert 3 miles.", "3 miles are 15,840 feet.", "Nope, use kilometres."),
        "Use kilometres.",
        "The user asks to convert some miles",
    ),
    (
        ("Show me the logs.", "Here are all the logs.", "Please stop sending me whole files."),
        "Stop sending the user whole files.",
        "The user asks to show them the logs",
    ),
    (
        ("What's the weather?", "It is 68 degrees Fahrenheit.", "From now on, use Celsius."),
        "Use Celsius.",
        "",
    ),
    (
        ("Review my essay.", "Nice essay!", "Next time, point out the weak arguments."),
        "Point out the weak arguments.",
        "The user asks to review their essay",
    ),
    (
        ("Fix the failing test.", "I deleted the test.", "No! Never delete a failing test."),
        "Never delete a failing test.",
        "The user asks to fix the failing test",
    ),
    (
        ("Plan my week in Rome.", "Monday: museum …", "You forgot to include my rest days."),
        "Be sure to include the user's rest days.",
        "The user asks to plan their week",
    ),
    (
        ("Order lunch for the team.", "Ordered.", "You shouldn't have used my private card."),
        "Do not use the user's private card.",
        "The user asks to order lunch for the team",
    ),
    (
        ("Explain my bill.", "Sure, great question!", "You keep praising my questions."),
        "Stop praising the user's questions.",
        "The user asks to explain their bill",
    ),
    (
        ("Compare the two phones.", "Phone A is blue.", "You missed the battery life."),
        "Do not leave out the battery life.",
        "The user asks to compare the two phones",
    ),
    (
        ("Set the thermostat to 20.", "Done: 20 Fahrenheit.", "Celsius, not Fahrenheit!"),
        "The answer should be Celsius, not Fahrenheit.",
        "",
    ),
    (
        ("What's my balance?", "200 dollars.", "It should be in euros, I live in Spain."),
        "The answer should be in euros.",
        "The user asks: what's their balance",
    ),
    (
        ("Can you sum up the article?", "…", "Too long. Please keep it to three sentences from now on."),
        "Keep it to three sentences from now on.",
        "The user asks to sum up the article",
    ),
    (
        ("Write a CSV parser.", "import pandas", "No, I told you not to use pandas."),
        "Do not use pandas.",
        "The user asks to write a CSV parser",
    ),
    (
        ("Which vaccine do I need?", "None.", "That's incorrect. Always check the destination country first."),
        "Always check the destination country first.",
        "The user asks: which vaccine do they need",
    ),
    (
        ("I need a refund for my blender.", "Refunds take a month.", "Wrong, don't quote the old policy."),
        "Don't quote the old policy.",
        "The user needs a refund for their blender",
    ),
    (
        ("Rename the branch.", "Done: Feature-1.", "I asked you to use lower case."),
        "Use lower case.",
        "The user asks to rename the branch",
    ),
    (
        ("Write a haiku.", "Roses are red …", "I meant a poem of three lines."),
        "Take it as the user meant it: A poem of three lines.",
        "The user asks to write a haiku",
    ),
    (
        ("Could you schedule a call?", "Scheduled for Friday.", "Actually, please don't schedule anything on Fridays."),
        "Don't schedule anything on Fridays.",
        "The user asks to schedule a call",
    ),
    (
        ("List the invoices.", "Invoice 1 …", "Make sure you sort them by date."),
        "Make sure you sort them by date.",
        "The user asks to list the invoices",
    ),
    (
        ("Explain recursion.", "Recursion is …", "Can you please never use the Fibonacci example again?"),
        "Never use the Fibonacci example again.",
        "The user asks to explain recursion",
    ),
    (
        ("Write release notes.", "We fixed bugs.", "I want you to mention every breaking change."),
        "Mention every breaking change.",
        "The user asks to write release notes",
    ),
]


@pytest.mark.parametrize(("said", "content", "trigger"), CORRECTED, ids=[said[-1] for said, _, _ in CORRECTED])
async def test_a_correction_becomes_a_playbook(said: tuple[str, ...], content: str, trigger: str) -> None:
    turns = talk(*said)
    found = await learned(turns, kinds=frozenset((Kind.USER_PLAYBOOK,)))
    assert [(each.content, each.trigger) for each in found] == [(content, trigger)]
    assert_grounded(found, turns)


async def test_the_reason_of_an_instruction_is_a_fact() -> None:
    found = await learned(talk("What's my balance?", "200 dollars.", "It should be in euros, I live in Spain."))
    assert [each.content for each in found] == ["The answer should be in euros.", "The user lives in Spain."]


async def test_an_instruction_without_a_request_has_no_trigger() -> None:
    (found,) = await learned(talk("From now on, always answer in short sentences."))
    assert (found.trigger, found.content) == ("", "Always answer in short sentences.")


@pytest.mark.parametrize(
    "said", ["When I ask for code, always include type hints.", "Always include type hints when I ask for code."]
)
async def test_an_instruction_that_names_its_case_holds_there(said: str) -> None:
    (found,) = await learned(talk("Hello", "Hello!", said))
    assert found.trigger == "The user asks for code"
    assert found.content == "Always include type hints."


async def test_a_second_correction_goes_back_to_the_same_request() -> None:
    said = ("Draft a reply to Jo.", "Yo Jo", "No, use a formal tone.", "Dear Sir", "No, write only two sentences.")
    found = await learned(talk(*said))
    assert [each.trigger for each in found] == ["The user asks to draft a reply"] * 2


async def test_what_was_learned_from_already_is_context_only() -> None:
    turns = [replace(turn, is_new=False) for turn in talk("Price?", "10 dollars.", "No, always use euros.")]
    assert await learned([*turns, Turn(9, "agent", "9 euros."), Turn(10, "user", "Thanks!")]) == ()


async def test_the_request_may_stand_in_the_context() -> None:
    turns = talk("How much is the ticket?", "10 dollars.", "No, always use euros.")
    context = [replace(turn, is_new=False) for turn in turns[:2]]
    (found,) = await learned([*context, turns[2]])
    assert found.trigger == "The user asks: how much is the ticket"
    assert_grounded([found], [*context, turns[2]])


async def test_only_the_wanted_kinds_are_learned() -> None:
    turns = talk("Plan dinner.", "Steak!", "No, I'm vegetarian. Never suggest meat.")
    assert {each.kind for each in await learned(turns)} == {Kind.PROFILE, Kind.USER_PLAYBOOK}
    assert {each.kind for each in await learned(turns, kinds=frozenset((Kind.PROFILE,)))} == {Kind.PROFILE}
    assert await learned(turns, kinds=frozenset()) == ()


HOW_TO_ANSWER = [
    ("ok. could you leave out the emojis please, I'm a grown man", "Do not use emojis."),
    ("Can you drop the emojis?", "Do not use emojis."),
    ("would you mind not using emojis", "Do not use emojis."),
    ("emojis off please", "Do not use emojis."),
    ("skip the pleasantries", "Do not use pleasantries."),
    ("No small talk please!", "Do not use small talk."),
    ("No more jokes.", "Do not use jokes."),
    ("Can we stick to bullet points?", "Use bullet points."),
    ("bullet points please", "Use bullet points."),
    ("Keep your answers short, please.", "Keep your answers short."),
    ("Could you keep it shorter?", "Keep answers shorter."),
    ("Please be brief.", "Keep answers brief."),
    ("short answers pls", "Give short answers."),
    ("I'd appreciate shorter answers.", "Give shorter answers."),
    ("Can you be less formal?", "Keep answers less formal."),
    ("Just the code please.", "Give only the code."),
    ("just the times, nothing else", "Give only the times."),
    ("Short sentences in plain words, please.", "Use short sentences in plain words."),
    ("plain English please", "Use plain English."),
    ("tl;dr", "Keep answers short."),
    ("That's a wall of text.", "Keep answers short."),
]
LONG_ANSWER = (
    "Debouncing is a technique that delays the execution of a function until a certain time has passed. It is often "
    "used for search boxes and for windows that change their size. Let us look at it step by step."
)


@pytest.mark.parametrize(("said", "content"), HOW_TO_ANSWER)
async def test_how_to_answer_is_a_standing_order_in_every_tone(said: str, content: str) -> None:
    turns = talk("Has my order left yet?", "Yay! It is on its way!", said)
    found = await learned(turns, kinds=frozenset((Kind.USER_PLAYBOOK,)))
    assert [(each.content, each.trigger) for each in found] == [(content, "")]


@pytest.mark.parametrize("said", ["Too long.", "Way too long!", "Sorry, that's a bit too long for me."])
async def test_a_long_answer_may_be_too_long_and_a_short_one_speaks_of_something_long(said: str) -> None:
    (found,) = await learned(talk("How do I debounce?", LONG_ANSWER, said))
    assert (found.content, found.trigger) == ("Keep answers short.", "")
    assert await learned(talk("How long is the flight?", "It takes nineteen hours.", said)) == ()
