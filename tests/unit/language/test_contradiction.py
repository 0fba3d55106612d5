import pytest

from reflexio.language.contradiction import contradicts

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
    ("Antworte kurz.", "Antworte auf Deutsch."),
    ("", "Never say never."),
]


@pytest.mark.parametrize(("one", "other"), CONTRADICTIONS)
def test_advice_that_cannot_both_be_followed_is_opposed(one: str, other: str) -> None:
    assert contradicts(one, other)
    assert contradicts(other, one)


@pytest.mark.parametrize(("one", "other"), NO_CONTRADICTIONS)
def test_advice_that_can_both_be_followed_is_not(one: str, other: str) -> None:
    assert not contradicts(one, other)
    assert not contradicts(other, one)


@pytest.mark.parametrize("text", [each for pair in CONTRADICTIONS + NO_CONTRADICTIONS for each in pair])
def test_nothing_is_opposed_to_itself(text: str) -> None:
    assert not contradicts(text, text)
