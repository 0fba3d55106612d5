import time

import pytest

from reflexio.language.contradiction import contradicts, instruction_replacement, replacement

CONTRADICTIONS = [
    ("Always ask for the order number.", "Never ask for the order number."),
    ("Ask first.", "Do not ask first."),
    ("Ask before deleting files.", "Don’t ask before deleting files."),
    ("Ask the user for confirmation before running a migration.", "Run migrations without asking for confirmation."),
    ("Prefer tabs over spaces.", "Prefer spaces over tabs."),
    ("Use email instead of phone.", "Instead of email, use phone."),
    ("Use tabs, not spaces.", "Use spaces, not tabs."),
    ("Use bullet points.", "Write in prose instead of bullet points."),
    ("Keep answers short.", "Keep answers long."),
    ("Give more detail.", "Give less detail."),
    ("Be brief.", "Be detailed."),
    ("Use emojis in replies.", "No emojis."),
    ("Use emojis.", "Avoid emojis."),
    ("Include the source links.", "Leave out the source links."),
    ("Offer a refund.", "Do not offer a refund for late deliveries."),
    ("Apologise for the delay and offer a voucher.", "Don't offer a voucher."),
    ("Reply to the customer in German.", "Do not reply in German."),
    ("Confirm the shipping address before placing the order.", "Do not confirm the shipping address; just place it."),
    ("You should run the tests before committing.", "Skip running the tests before committing."),
    ("Verify the identity before refunding.", "Refund before verifying the identity."),
    ("When they ask for a price, name the price.", "If somebody wants a quote, do not name the price."),
    ("Antworte auf Deutsch.", "Antworte nicht auf Deutsch."),
]
NO_CONTRADICTIONS = [
    ("Avoid jargon.", "Do not use jargon."),
    ("Never use emojis.", "Avoid emojis in replies."),
    ("Don't forget to ask for the order number.", "Ask for the order number."),
    ("Do not hesitate to escalate.", "Escalate."),
    ("Keep answers short.", "Do not write long answers."),
    ("Use formal language.", "Do not use informal language."),
    ("Use spaces instead of tabs.", "Do not use tabs."),
    ("Prefer email over phone.", "Use email, not phone."),
    ("Never refund without checking the order.", "Check the order, then refund."),
    ("Do not refund before checking the order.", "Check the order before refunding."),
    ("Check the API docs before calling an API.", "Never call an API without checking its docs."),
    ("Do not ship until the address is confirmed.", "Confirm the address."),
    ("Do not share passwords.", "Share the link to reset passwords."),
    ("Do not ask for the password.", "Ask for the email address."),
    ("Ask for the account number.", "Ask for the account number, not the password."),
    ("Offer a refund for late deliveries.", "Do not offer a refund for used goods."),
    ("If the order is late, offer a voucher.", "If the order is on time, do not offer a voucher."),
    ("Do not guess; look it up in the docs.", "Look it up in the docs."),
    ("Respond in English.", "Do not respond in German."),
    ("Be brief.", "Be polite."),
    ("Be formal.", "Inform the customer."),
    ("Antworte kurz.", "Antworte auf Deutsch."),
    ("", "Never say never."),
]


@pytest.mark.parametrize(("one", "other"), CONTRADICTIONS)
def test_advice_that_cannot_both_be_followed_is_a_contradiction(one: str, other: str) -> None:
    assert contradicts(one, other)
    assert contradicts(other, one)


@pytest.mark.parametrize(("one", "other"), NO_CONTRADICTIONS)
def test_advice_that_can_both_be_followed_is_not(one: str, other: str) -> None:
    assert not contradicts(one, other)
    assert not contradicts(other, one)


@pytest.mark.parametrize("text", [text for pair in CONTRADICTIONS + NO_CONTRADICTIONS for text in pair])
def test_nothing_contradicts_itself(text: str) -> None:
    assert not contradicts(text, text)


NO = "one says yes and the other no"
REPLACED = [
    ("The user moved to Porto.", "The user lives in Lisbon.", "another home was named"),
    ("The user prefers tea.", "The user prefers coffee.", "another choice was named"),
    ("The user is not vegetarian.", "The user is vegetarian.", NO),
    ("The user prefers aisle seats to window seats.", "The user prefers window seats to aisle seats.", NO),
    ("The user runs 20 km a week.", "The user runs 10 km a week.", "the figure changed"),
]
KEPT = [
    ("The user is a vegan.", "The user follows a strict vegan diet and avoids all animal products."),
    ("The user usually avoids seafood.", "The user avoids seafood and fish dishes, which they all dislike."),
    ("The user prefers indoor activities.", "The user prefers activities that don't involve staring at screens."),
    ("The user likes opera.", "The user doesn't like jazz."),
]


@pytest.mark.parametrize(("newer", "older", "reason"), REPLACED)
def test_a_newer_statement_replaces_what_it_contradicts(newer: str, older: str, reason: str) -> None:
    assert replacement(newer, older, 0.8) == reason


@pytest.mark.parametrize(("newer", "older"), KEPT)
def test_statements_that_can_both_hold_are_kept(newer: str, older: str) -> None:
    assert replacement(newer, older, 0.8) == ""
    assert replacement(older, newer, 0.8) == ""


def test_statements_about_different_things_are_kept() -> None:
    assert replacement("The user is not vegetarian.", "The user is vegetarian.", 0.4) == ""


@pytest.mark.parametrize(
    ("newer", "older", "reason"),
    [
        ("Give prices in dollars.", "Give prices in euros.", "another way to answer was named"),
        ("Give prices in dollars.", "Give prices in dollars.", ""),
        ("Give prices in dollars and cents.", "Give prices in dollars.", ""),
        ("Include the fee.", "Include the source.", ""),
        ("Sort by date and name.", "Sort by price and rating of sellers.", ""),
    ],
)
def test_an_instruction_with_another_value_replaces_the_older_one(newer: str, older: str, reason: str) -> None:
    assert instruction_replacement(newer, older, 0.8) == reason


@pytest.mark.parametrize("word", ["a", " ", "\n", ".", "1.", "1) ", "prefer ", "if ", "and ", ". ", "- ", "favourite "])
def test_no_text_takes_long(word: str) -> None:
    text = (word * 100_000)[:100_000]
    began = time.perf_counter()
    assert not contradicts(f"{text}x", f"{text} over tea")
    replacement(text, f"x {text}", 0.9)
    instruction_replacement(text, f"x {text}", 0.9)
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("The user has a dog called Rex.", "The user has a dog called Rex."),
        ("The user has a dog called Rex.", "The user has a dog called Max."),
        ("The user has two children.", "The user has two children in school."),
    ],
)
def test_the_same_number_replaces_nothing(newer: str, older: str) -> None:
    assert replacement(newer, older, 1.0) == ""


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("The user can go up to 75 pounds a week for the shopping now.", "The user's budget is 60 pounds a week."),
        ("The user is leaving on the 17th now.", "The user leaves on the 14th of July."),
        ("The user has switched from Aviva to Bupa.", "The user is insured with Aviva."),
        ("The user moved from Slack to Teams.", "The user uses Slack at work."),
        ("Mornings don't work any longer.", "The user is at home in the mornings."),
        ("Mornings no longer suit the user.", "Mornings are best for deliveries."),
    ],
)
def test_what_a_newer_statement_takes_back_does_not_hold(newer: str, older: str) -> None:
    assert replacement(newer, older, 0.4)


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("The user can spend 20 euros a person.", "The user's budget is 60 pounds a week."),
        ("The user leaves on the 14th of July.", "The user returns on the 20th of July."),
        ("The user has switched from Aviva to Bupa.", "The user likes the Aviva stadium."),
        ("Mornings don't work any longer.", "The user is free in the evenings."),
        ("Mornings don't work any longer.", "The user runs in the mornings."),
    ],
)
def test_what_a_newer_statement_does_not_touch_holds(newer: str, older: str) -> None:
    assert not replacement(newer, older, 0.4)
