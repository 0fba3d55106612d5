"""What an organisation has removed from texts before they are stored."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field


class RedactionKind(StrEnum):
    """What can be removed."""

    EMAIL = "email"
    PHONE = "phone"
    CARD = "card"
    IBAN = "iban"
    KEY = "key"

    @property
    def mark(self) -> str:
        """What is stored instead."""
        return f"[{self.value}]"


SAME = {
    "email": ("e_mail", "emails", "e_mails", "email_address", "email_addresses", "mail"),
    "phone": ("phones", "phone_number", "phone_numbers", "telephone"),
    "card": ("cards", "card_number", "card_numbers", "credit_card", "credit_cards", "payment_card"),
    "iban": ("ibans", "bank_account", "bank_accounts"),
    "key": ("keys", "token", "tokens", "api_key", "api_keys", "secret", "secrets", "credentials"),
}
TRANSLATED = {other: name for name, others in SAME.items() for other in others}


def _kinds(value: Any) -> Any:
    """None and false are none, true and "all" are all; each may be written by another common name."""
    if value is None or value is False:
        return []
    if value is True or value == "all":
        return list(RedactionKind)
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list | tuple | set | frozenset):
        return value
    if any(entry == "all" for entry in value):
        return list(RedactionKind)
    return list(dict.fromkeys(_translate(entry) for entry in value))


def _translate(entry: Any) -> Any:
    if not isinstance(entry, str):
        return entry
    name = entry.strip().lower().replace("-", "_").replace(" ", "_")
    return TRANSLATED.get(name, name)


Redaction = Annotated[list[RedactionKind], BeforeValidator(_kinds), Field(max_length=len(RedactionKind))]
