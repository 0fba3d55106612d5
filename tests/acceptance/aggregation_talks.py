"""Twelve customers of a shop who teach its agent one and the same lesson, each in a conversation of their own."""

from typing import Any

from tests.builders import turns

LESSONS = [
    "No, always ask the neighbours first before you start a refund.",
    "Please always check with the neighbours before you offer a refund.",
    "Don't start a refund before you have asked the neighbours.",
    "You should always ask the neighbours first, then think of a refund.",
    "Next time ask my neighbours before you refund anything.",
    "From now on, ask the neighbours before starting a refund.",
]
COMPLAINTS = [
    "My parcel is marked delivered, but there is nothing here.",
    "The tracking says my parcel was delivered, but I have not received it.",
    "My parcel was marked as delivered yesterday and it is not here.",
]
CUSTOMERS = [f"customer-{number}" for number in range(12)]


def order(number: int) -> str:
    """Something that only one customer has."""
    return str(1840 + 7 * number)


def complaint(number: int) -> list[dict[str, Any]]:
    """What customer `number` says."""
    said = f"{COMPLAINTS[number % len(COMPLAINTS)]} It is order {order(number)}."
    return turns(said, "I am sorry. I have started a refund.", LESSONS[number % len(LESSONS)], "Understood.")
