"""Telling an account that has run dry from a limit that passes by itself. Providers send both as HTTP 429."""

import re

OUT_OF_CREDIT = re.compile(
    r"insufficient_quota|exceeded your current quota|credit balance|out of credits?|payment required"
    r"|insufficient (?:credits?|balance|funds)|(?:spend|billing)_?(?: hard)?[ _]limit|account is not active"
    r"|check your (?:plan and )?billing",
    re.IGNORECASE,
)


def is_out_of_credit(text: str) -> bool:
    """True when waiting does not help.

    A rate limit may speak of billing too ("raise your limit by adding a payment method … /account/billing"), so
    the word alone says nothing.
    """
    return "rate_limit_exceeded" not in text and OUT_OF_CREDIT.search(text) is not None
