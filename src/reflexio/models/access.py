"""What a key permits: its scopes, and the caller that it stands for."""

from dataclasses import dataclass
from enum import StrEnum


class KeyScope(StrEnum):
    """What a key may do. Each route needs one of these; none includes another."""

    PUBLISH = "publish"
    READ = "read"
    REVIEW = "review"
    ADMIN = "admin"


ALL_SCOPES = frozenset(KeyScope)


@dataclass(frozen=True, slots=True)
class Caller:
    """For whom a request speaks: the organisation, and the scopes and the owner of its key.

    The owner is empty without a key, with the operator's own key, and with a key that was created without one.
    """

    org_id: str
    scopes: frozenset[KeyScope] = ALL_SCOPES
    owner: str = ""
