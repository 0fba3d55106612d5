"""What users say of themselves becomes a fact in the third person."""

import pytest

from reflexio.models.learning import Kind
from reflexio.models.learning import ProfileTimeToLive as Live
from tests.unit.learners.local.talk import assert_grounded, learned, talk

FACTS = {
    "I'm vegetarian.": "The user is vegetarian.",
    "I am allergic to peanuts and shellfish.": "The user is allergic to peanuts and shellfish.",
    "I have a severe nut allergy.": "The user has a severe nut allergy.",
    "By the way, I prefer aisle seats.": "The user prefers aisle seats.",
    "I usually prefer trains over planes, but this time I'll fly.": "The user usually prefers trains over planes.",
    "I live in Lisbon.": "The user lives in Lisbon.",
    "I just moved to Porto.": "The user just moved to Porto.",
    "My name is Dagny.": "The user's name is Dagny.",
    "I can't stand cilantro!": "The user can't stand cilantro.",
    "I don't eat pork.": "The user doesn't eat pork.",
    "I hate horror movies because I get nightmares.": "The user hates horror movies.",
    "Speaking of films, I tend to avoid musicals.": "The user tends to avoid musicals.",
    "I work as a night nurse in Leeds.": "The user works as a night nurse in Leeds.",
    "I have two kids and a dog.": "The user has two kids and a dog.",
    "My favourite colour is teal.": "The user's favourite colour is teal.",
    "My budget is 400 euros.": "The user's budget is 400 euros.",
    "I drive a 2016 Skoda Octavia.": "The user drives a 2016 Skoda Octavia.",
    "My goal is to run a marathon under four hours.": "The user's goal is to run a marathon under four hours.",
    "I'm training for my first triathlon.": "The user is training for their first triathlon.",
    "I'm a freelance illustrator.": "The user is a freelance illustrator.",
    "As a single parent, I need quick dinners.": "The user is a single parent.",
    "Strong perfumes give me headaches.": "Strong perfumes give the user headaches.",
    "No, I'm lactose intolerant.": "The user is lactose intolerant.",
    "I told you I'm vegan.": "The user is vegan.",
    "I only buy second-hand clothes.": "The user only buys second-hand clothes.",
    "I'm not a fan of group tours.": "The user is not a fan of group tours.",
    "I find flashcards boring and never use them.": "The user finds flashcards boring and never uses them.",
    "Remember that I don't drink alcohol.": "The user doesn't drink alcohol.",
    "My daughter is allergic to bees.": "The user's daughter is allergic to bees.",
    "I speak Danish and a little Finnish.": "The user speaks Danish and a little Finnish.",
    "I can only meet after six.": "The user can only meet after six.",
    "I own a small bakery in Graz.": "The user owns a small bakery in Graz.",
    "I love hiking in the Alps.": "The user loves hiking in the Alps.",
    "I'm 34 years old.": "The user is 34 years old.",
    "I'd rather not share my location.": "The user would rather not share their location.",
    "i live in the Alps and i want a quote": "The user lives in the Alps.",
    "My name is Brenda Weber and the card number is 4035 6738 2225 8104.": "The user's name is Brenda Weber.",
    "I always need an aisle seat.": "The user always needs an aisle seat.",
    "I need a window seat whenever I fly.": "The user needs a window seat whenever they fly.",
    "I travel with a guide dog.": "The user travels with a guide dog.",
    "We fly with a baby.": "The user flies with a baby.",
    "that won't work, we're on Python 3.9": "The user is on Python 3.9.",
    "We're still on Java 11.": "The user is still on Java 11.",
    "Our servers run Debian 12.": "The user's servers run Debian 12.",
    "Yes, it turns out that I'm allergic to penicillin.": "The user is allergic to penicillin.",
    "It's worth mentioning that I'm deaf in one ear.": "The user is deaf in one ear.",
    "I should add that I use a wheelchair.": "The user uses a wheelchair.",
    "The doctor says I'm diabetic.": "The user is diabetic.",
    "Well, actually I'm vegan.": "The user is vegan.",
    "As I said, I live on the fifth floor.": "The user lives on the fifth floor.",
    "I'm insured with Aviva.": "The user is insured with Aviva.",
    "I bank with Barclays.": "The user banks with Barclays.",
    "My GP is Dr Patel.": "The user's GP is Dr Patel.",
    "We leave on the 14th of July.": "The user leaves on the 14th of July.",
    "Change of plan: we're leaving on the 17th now.": "The user is leaving on the 17th now.",
    "I've started a new job, so mornings don't work any longer.": "Mornings don't work any longer.",
    "Saturdays no longer suit me.": "Saturdays no longer suit the user.",
    "Evenings after six, please.": "The user wants evenings after six.",
    "We can go up to 75 pounds a week now.": "The user can go up to 75 pounds a week now.",
    "Ich bin Vegetarier.": "Der Nutzer sagt: „Ich bin Vegetarier.“",
    "Ich wohne in Graz.": "Der Nutzer sagt: „Ich wohne in Graz.“",
    "Prefiero los hoteles pequeños.": "El usuario dice: «Prefiero los hoteles pequeños.»",
    "Je suis allergique aux noix.": "L'utilisateur dit : « Je suis allergique aux noix. »",
}


@pytest.mark.parametrize(("said", "fact"), FACTS.items(), ids=FACTS)
async def test_a_fact_is_told_of_the_user(said: str, fact: str) -> None:
    turns = talk(said)
    found = await learned(turns)
    assert [(each.kind, each.content) for each in found] == [(Kind.PROFILE, fact)]
    assert_grounded(found, turns)


LIVES = {
    "I'm flying to Oslo tomorrow.": Live.ONE_DAY,
    "I'm travelling to Rome next week.": Live.ONE_WEEK,
    "I'm planning to visit Kyoto next month.": Live.ONE_MONTH,
    "I'm saving for a camper van this summer.": Live.ONE_QUARTER,
    "I'm training for a marathon.": Live.ONE_QUARTER,
    "I'm planning to move to Ghent next year.": Live.ONE_YEAR,
    "I'm vegetarian.": Live.INFINITY,
    "I prefer window seats.": Live.INFINITY,
}


@pytest.mark.parametrize(("said", "live"), LIVES.items(), ids=LIVES)
async def test_plans_end_and_traits_stay(said: str, live: Live) -> None:
    assert [each.time_to_live for each in await learned(talk(said))] == [live]


async def test_all_facts_of_one_message_are_kept_the_strongest_first() -> None:
    said = (
        "I'm a teacher. I live in Bonn. I drive a van. I'm allergic to nuts. I hate crowds. I prefer trains. I love "
        "jazz. "
        "I speak Danish."
    )
    found = [each.content for each in await learned(talk(said))]
    assert found[:3] == ["The user is allergic to nuts.", "The user hates crowds.", "The user prefers trains."]
    assert len(found) == 8


async def test_a_conversation_gives_a_dozen_facts_at_most() -> None:
    animals = ["cat", "dog", "cow", "pig", "hen", "goat", "duck", "horse", "sheep", "snake", "mouse", "frog", "bee"]
    said = " ".join(f"I own a {animal}." for animal in animals)
    assert len(await learned(talk(said))) == 12


async def test_a_fact_told_twice_is_learned_once() -> None:
    found = await learned(talk("I'm vegetarian.", "Noted.", "As I said, I'm vegetarian."))
    assert len(found) == 1


@pytest.mark.parametrize(
    "said",
    [
        "My sister can't make it earlier.",
        "We're with you on that.",
        "We're on our way.",
        "We're on Flight 1857.",
        "I always want to learn more.",
        "Evenings are nice here.",
        "I'm a grown man!",
    ],
)
async def test_a_passing_remark_is_no_fact(said: str) -> None:
    assert await learned(talk("Hello!", "Hi, how can I help?", said)) == ()
