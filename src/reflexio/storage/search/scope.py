"""Whose rows are searched."""

from dataclasses import dataclass
from hashlib import blake2b
from json import dumps


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose rows: those of everyone in an org, or those of one user.

    Digests, so that no id can pose as another or as a part of the search language.
    """

    everyone: str
    user: str | None = None

    @classmethod
    def of(cls, org: str, kind: str, user: str | None = None) -> "Scope":
        return cls(_digest(org, kind), None if user is None else _digest(org, kind, user))

    @property
    def narrowest(self) -> str:
        return self.everyone if self.user is None else self.user


def _digest(*parts: str) -> str:
    return "s" + blake2b(dumps(parts).encode(), digest_size=12).hexdigest()
