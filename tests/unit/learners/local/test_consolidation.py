"""A candidate next to what is stored: known, more of it, against it, to be forgotten, or new."""

from collections.abc import AsyncIterator

import pytest

from reflexio.learners.local.learner import LocalLearner
from reflexio.models.config import Config
from reflexio.models.extraction import Decision, ExtractedLearning, Neighbour, Neighbourhood
from reflexio.models.learning import Kind, Learning
from reflexio.ports.embedding import Embedder
from reflexio.providers.embedding.local import LocalEmbedder


@pytest.fixture
async def embedder() -> AsyncIterator[Embedder]:
    embedder = LocalEmbedder()
    yield embedder
    await embedder.aclose()


async def decided(embedder: Embedder, new: ExtractedLearning, *stored: Learning) -> Decision:
    vectors = await embedder.embed([new.text, *(each.text for each in stored)])
    neighbours = [Neighbour(each, float(vectors[0] @ vector)) for each, vector in zip(stored, vectors[1:], strict=True)]
    nearest = tuple(sorted(neighbours, key=lambda each: -each.similarity))
    (decision,) = (await LocalLearner(embedder).consolidate([Neighbourhood(new, nearest)], Config())).decisions
    assert decision.reason
    return decision


def fact(content: str, *, forget: bool = False) -> ExtractedLearning:
    return ExtractedLearning(Kind.PROFILE, "profile", content, forget=forget)


def stored(content: str, row: int = 7, trigger: str = "") -> Learning:
    kind = Kind.USER_PLAYBOOK if trigger else Kind.PROFILE
    return Learning(kind, content, id=row, name="playbook" if trigger else "profile", trigger=trigger)


def rule(content: str, trigger: str) -> ExtractedLearning:
    return ExtractedLearning(Kind.USER_PLAYBOOK, "playbook", content, trigger)


KNOWN = [
    ("The user is vegetarian.", "The user is vegetarian."),
    ("The user prefers aisle seats.", "The user usually prefers aisle seats on long flights."),
    ("The user really prefers aisle seats.", "The user prefers aisle seats."),
    ("The user is allergic to peanuts.", "The user is allergic to peanuts and shellfish."),
]


@pytest.mark.parametrize(("new", "old"), KNOWN)
async def test_what_is_known_is_dropped(new: str, old: str, embedder: Embedder) -> None:
    assert (await decided(embedder, fact(new), stored(old))).action == "drop"


MORE = [
    ("The user is allergic to peanuts and shellfish.", "The user is allergic to peanuts."),
    ("The user prefers aisle seats on long flights.", "The user prefers aisle seats."),
]


@pytest.mark.parametrize(("new", "old"), MORE)
async def test_what_says_more_takes_the_old_in(new: str, old: str, embedder: Embedder) -> None:
    decision = await decided(embedder, fact(new), stored(old))
    assert (decision.action, decision.targets, decision.content) == ("merge", (7,), new)


async def test_two_that_are_alike_and_each_add_something_become_one(embedder: Embedder) -> None:
    new, old = "The user avoids skincare products with silicones.", "The user avoids skincare products with parabens."
    decision = await decided(embedder, fact(new), stored(old))
    assert (decision.action, decision.targets) == ("merge", (7,))
    assert decision.content == f"{old} {new}"


AGAINST = [
    ("The user moved to Porto.", "The user lives in Lisbon."),
    ("The user prefers tea.", "The user prefers coffee."),
    ("The user prefers tea over coffee.", "The user prefers coffee over tea."),
    ("The user is not vegetarian.", "The user is vegetarian."),
    ("The user doesn't like jazz.", "The user likes jazz."),
    ("The user no longer eats meat.", "The user eats meat."),
    ("The user works as a baker.", "The user works as a nurse."),
    ("The user's name is Dagny.", "The user's name is Ragnhild."),
    ("The user's favourite colour is teal.", "The user's favourite colour is red."),
    ("The user's budget is 900 euros.", "The user's budget is 400 euros."),
    ("The user is 35 years old.", "The user is 34 years old."),
]


@pytest.mark.parametrize(("new", "old"), AGAINST)
async def test_a_contradiction_keeps_the_newer(new: str, old: str, embedder: Embedder) -> None:
    decision = await decided(embedder, fact(new), stored(old))
    assert (decision.action, decision.targets) == ("replace", (7,))


WHEN = "The user asks: how much is the flight to Oslo"
RULES = [
    ("Never give prices in euros.", "Always give prices in euros.", "replace"),
    ("Always give prices in dollars.", "Always give prices in euros.", "replace"),
    ("Keep it under three sentences.", "Keep it under ten sentences.", "replace"),
    ("Don't use tables.", "Don't use emojis.", "add"),
    ("Always include the baggage fee.", "Always include the travel time.", "merge"),
    ("Always give prices in euros.", "Always give prices in euros.", "drop"),
]


@pytest.mark.parametrize(("new", "old", "action"), RULES)
async def test_a_rule_beside_another_for_the_same_request(new: str, old: str, action: str, embedder: Embedder) -> None:
    assert (await decided(embedder, rule(new, WHEN), stored(old, 7, WHEN))).action == action


BESIDE = [
    ("The user lives in Porto.", "The user loves hiking in the Alps."),
    ("The user is allergic to peanuts.", "The user is vegetarian."),
    ("The user's daughter is allergic to bees.", "The user is allergic to bees."),
    ("The user drives a van.", "The user prefers trains."),
    ("The user's favourite food is ramen.", "The user's favourite colour is red."),
    ("The user doesn't like jazz.", "The user likes opera."),
    ("The user has a dog.", "The user has a severe nut allergy."),
    ("The user works at the city hospital.", "The user works as a nurse."),
    ("The user's dog is old.", "The user's dog is brown."),
    ("The user is moving to Ghent next year.", "The user lives in Porto."),
    ("The user likes opera.", "The user likes jazz."),
]


@pytest.mark.parametrize(("new", "old"), BESIDE)
async def test_what_is_neither_known_nor_against_is_added(new: str, old: str, embedder: Embedder) -> None:
    assert (await decided(embedder, fact(new), stored(old))).action == "add"


async def test_the_same_words_for_another_request_are_another_rule(embedder: Embedder) -> None:
    new = rule("Keep it under five bullet points.", "The user asks to summarise meeting notes")
    old = stored("Keep it under five bullet points.", 7, "The user asks how to bake sourdough bread")
    assert (await decided(embedder, new, old)).action == "add"


FORGOTTEN = [
    ("The user is vegetarian", (1,)),
    ("The user's dog", (2,)),
    ("The user's diet", (1,)),
    ("everything about the user", (1, 2, 3)),
]


@pytest.mark.parametrize(("what", "targets"), FORGOTTEN)
async def test_what_is_about_it_is_forgotten(what: str, targets: tuple[int, ...], embedder: Embedder) -> None:
    rows = (
        stored("The user is vegetarian.", 1),
        stored("The user has a dog called Bo.", 2),
        stored("The user lives in Porto.", 3),
    )
    decision = await decided(embedder, fact(what, forget=True), *rows)
    assert (decision.action, tuple(sorted(decision.targets))) == ("forget", targets)


async def test_nothing_is_forgotten_that_nobody_named(embedder: Embedder) -> None:
    decision = await decided(embedder, fact("The user's salary", forget=True), stored("The user lives in Porto."))
    assert (decision.action, decision.targets) == ("drop", ())
