"""Tells an account without credit from a rate limit that ends after a while. Providers send both as HTTP 429."""

import re

OUT_OF_CREDIT = re.compile(
    r"insufficient_quota|exceeded your current quota|credit balance|out of credits?|payment required"
    r"|insufficient (?:credits?|balance|funds)|(?:spend|billing)_?(?: hard)?[ _]limit|account is not active"
    r"|check your (?:plan and )?billing",
    re.IGNORECASE,
)


def is_out_of_credit(text: str) -> bool:
    """True when waiting does not help.

    The word "billing" alone proves nothing: a rate limit may mention it, too ("raise your limit by adding a payment
    method … /account/billing").
    """
    return "rate_limit_exceeded" not in text and OUT_OF_CREDIT.search(text) is not None
