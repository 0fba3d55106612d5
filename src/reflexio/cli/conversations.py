"""A few conversations of a small shop, for the demo."""

from typing import Any

Conversation = tuple[str, str, list[dict[str, Any]]]

CONVERSATIONS: list[Conversation] = [
    (
        "amira",
        "order-1841",
        [
            {"role": "User", "content": "My parcel is marked delivered, but there is nothing here."},
            {"role": "Agent", "content": "I am sorry. I have started a refund for you."},
            {"role": "User", "content": "No, always check with the neighbours first, then look at refunds."},
            {"role": "Agent", "content": "Understood. The driver's note says it is with number 12, next door."},
            {"role": "User", "content": "Found it. By the way, I prefer to be written to by e-mail, not by phone."},
        ],
    ),
    (
        "jonas",
        "order-1857",
        [
            {"role": "User", "content": "The tracking says delivered, I have received nothing."},
            {"role": "Agent", "content": "Shall I send a new one?"},
            {"role": "User", "content": "Don't send anything before you have asked my neighbours, please."},
            {"role": "Agent", "content": "They have it: the lady on the second floor."},
        ],
    ),
    (
        "mei",
        "lamp-returns",
        [
            {"role": "User", "content": "How do I return a lamp that I bought in March?"},
            {
                "role": "Agent",
                "content": "You can return it within 14 days.",
                "expert_content": "Lamps can be returned for 100 days. Print the label under Orders > Returns; the "
                "refund comes two days after the parcel has been scanned.",
            },
        ],
    ),
    (
        "pavel",
        "invoice-77",
        [
            {"role": "User", "content": "I need invoice 77 with our VAT number on it."},
            {
                "role": "Agent",
                "content": "Here it is, with your VAT number.",
                "tools_used": [
                    {"tool_name": "get_invoice", "tool_data": {"id": "77"}, "status": "error: id must be a number"},
                    {"tool_name": "get_invoice", "tool_data": {"id": 77}, "status": "ok"},
                ],
            },
            {"role": "User", "content": "Thanks. I am vegetarian, by the way: no leather samples in the parcel."},
        ],
    ),
]
