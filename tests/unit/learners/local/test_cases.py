"""An instruction that names its own case gets it as its trigger; a reproach becomes the order that was not followed."""

import pytest

from reflexio.models.learning import Kind
from tests.unit.learners.local.talk import learned, talk

CONDITIONS = [
    (
        ("two avocados are missing from my bag", "I have refunded them to your card."),
        "Next time something is missing, ask me first if I want a refund or a replacement.",
        "Something is missing",
        "Ask the user first if they want a refund or a replacement.",
    ),
    (
        ("My mug came in pieces.", "I have refunded it."),
        "The next time an item is damaged, please ask me whether I want it replaced.",
        "An item is damaged",
        "Ask the user whether they want it replaced.",
    ),
    (
        ("I got some fancy pasta.", "The store brand was sold out."),
        "If something's out of stock, ask me before you substitute it with a dearer one.",
        "Something's out of stock",
        "Ask the user before you substitute it with a dearer one.",
    ),
    (
        ("I was late for work.", "I am sorry to hear that."),
        "Any time a bus is cancelled, text me.",
        "A bus is cancelled",
        "Text the user.",
    ),
    (
        ("They sent me home from the clinic.", "Oh no, why?"),
        "When you book a blood test, tell people to come with an empty stomach.",
        "The agent books a blood test",
        "Tell people to come with an empty stomach.",
    ),
    (
        ("I'd like an appointment for a blood test.", "You can come on Thursday at 9:30."),
        "Hm, don't I have to be fasting? You need to mention that when somebody books a blood test.",
        "Somebody books a blood test",
        "Mention that they have to be fasting.",
    ),
    (
        ("I'd like a passport appointment.", "Thursday at 9."),
        "You should tell people to bring a photo when they apply for a passport.",
        "People apply for a passport",
        "Tell people to bring a photo.",
    ),
    (
        ("Can you get me on a plane to Munich?", "Booked, without checked luggage."),
        "Next time check whether I bring luggage before you book a flight, I've got a booth to carry.",
        "The agent books a flight",
        "Check whether the user brings luggage before you book a flight.",
    ),
    (
        ("Why is my bill so high?", "We sent the barista edition, which costs more."),
        "Please don't swap something that's sold out for a more expensive brand without asking me.",
        "The agent swaps something that's sold out for a more expensive brand",
        "Don't swap something that's sold out for a more expensive brand without asking the user.",
    ),
    (
        ("Fix the csv export, please.", "Fixed! It's done."),
        "it's not, CI is red. Run the tests before you say that it's done.",
        "The agent says that it's done",
        "Run the tests before you say that it's done.",
    ),
    (
        ("Rename getUser to fetchUser.", "I renamed it and pushed."),
        "You broke the build. You have to run the tests before pushing.",
        "The agent pushes",
        "Run the tests before pushing.",
    ),
    (
        ("Why is the deploy red?", "I merged the branch."),
        "Don't merge anything until CI is green.",
        "The agent merges something",
        "Don't merge anything until CI is green.",
    ),
    (
        ("What's on my calendar?", "I moved your dentist."),
        "Do not move my appointments without telling me.",
        "The agent moves the user's appointments",
        "Do not move the user's appointments without telling them.",
    ),
    (
        ("Install the dev dependencies.", "I ran npm install."),
        "Use pnpm instead of npm in this repository.",
        "",
        "Use pnpm instead of npm in this repository.",
    ),
]

REPROACHES = [
    ("You should have asked me before refunding!", "Ask the user before refunding."),
    ("You should've checked the opening hours.", "Check the opening hours."),
    (
        "You should have asked me how many bags I have before booking the flight.",
        "Ask the user how many bags they have before booking the flight.",
    ),
    ("You ought to have shown me a draft first.", "Show the user a draft first."),
    ("You should have written a test first.", "Write a test first."),
    ("You could have warned me that it goes to everybody.", "Warn the user that it goes to everybody."),
    ("You shouldn't have sent it to the whole team.", "Do not send it to the whole team."),
    ("You should not have sold my old tickets.", "Do not sell the user's old tickets."),
    ("You should have thought of the deposit.", "Think of the deposit."),
]


@pytest.mark.parametrize(("before", "said", "trigger", "content"), CONDITIONS, ids=[case[1] for case in CONDITIONS])
async def test_the_case_that_an_instruction_names_is_its_trigger(
    before: tuple[str, str], said: str, trigger: str, content: str
) -> None:
    found = await learned(talk(*before, said), kinds=frozenset((Kind.USER_PLAYBOOK,)))
    assert [(each.trigger, each.content) for each in found] == [(trigger, content)]


async def test_what_was_reported_stays_the_case_of_what_the_agent_then_did() -> None:
    turns = talk("Half of the eggs were broken.", "I have refunded them.", "You should have asked me before refunding!")
    (found,) = await learned(turns, kinds=frozenset((Kind.USER_PLAYBOOK,)))
    assert found.trigger == "The user says: Half of the eggs were broken"


@pytest.mark.parametrize(("said", "content"), REPROACHES)
async def test_a_reproach_becomes_the_order_that_was_not_followed(said: str, content: str) -> None:
    turns = talk("Take care of it, please.", "It is done.", said)
    found = await learned(turns, kinds=frozenset((Kind.USER_PLAYBOOK,)))
    assert [each.content for each in found] == [content]


@pytest.mark.parametrize(
    "said",
    [
        "Next time I want a coffee I'll ask you.",
        "If you book it now, I'll pay cash.",
        "You should see Lisbon when you get the chance.",
        "You should have seen my face!",
        "You should have been there.",
        "Put the coat on before you leave.",
    ],
)
async def test_a_remark_of_the_same_form_is_no_instruction(said: str) -> None:
    assert await learned(talk("I had a long day.", "Tell me more.", said)) == ()


async def test_what_several_ask_is_told_of_the_user() -> None:
    turns = talk("We're away next week, what do I do about my box?", "Nothing.", "No, tell me how to pause it.")
    (found,) = await learned(turns, kinds=frozenset((Kind.USER_PLAYBOOK,)))
    assert found.trigger == "The user is away, what do they do about their box"


async def test_always_stands_first() -> None:
    said = "That's a wall of text. Please use bullet points when you list things for me, always."
    found = await learned(talk("Which boxes are there?", "There are three.", said))
    assert {each.content for each in found} == {
        "Keep answers short.",
        "Always use bullet points when you list things for the user.",
    }


async def test_a_request_for_what_the_agent_is_about_to_do_stays_the_case() -> None:
    turns = talk("book me the cheapest flight", "Booked.", "argh! ask about luggage before you book a flight")
    (found,) = await learned(turns, kinds=frozenset((Kind.USER_PLAYBOOK,)))
    assert found.trigger == "The user asks to book them the cheapest flight"


async def test_a_smile_is_no_part_of_a_case() -> None:
    turns = talk(
        "Half of the eggs were broken :(", "I have refunded them.", "You should have asked me before refunding!"
    )
    (found,) = await learned(turns, kinds=frozenset((Kind.USER_PLAYBOOK,)))
    assert found.trigger == "The user says: Half of the eggs were broken"
