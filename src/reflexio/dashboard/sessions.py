"""Sessions of signed-in people, and the tokens of forms. Nothing is stored: a cookie is signed with the key's digest.

A key that is revoked, or whose row is gone, has no digest any more, so its sessions end at once.
"""

import hmac
from dataclasses import dataclass
from typing import Self

from reflexio.models.access import ALL_SCOPES, Caller, KeyScope

COOKIE = "reflexio_session"
LASTS = 14 * 86_400
OPERATOR = 0
"""Stands for the id of the operator's own key, which has no row."""


@dataclass(frozen=True)
class BrowserSession:
    """What a cookie claims: the id of a key, the second at which the session ends, and the signature."""

    key_id: int
    ends_at: int
    signature: str

    @classmethod
    def start(cls, key_id: int, digest: str, now: int) -> Self:
        ends_at = now + LASTS
        return cls(key_id, ends_at, _sign(digest, f"session {key_id} {ends_at}"))

    @classmethod
    def read(cls, cookie: str) -> Self | None:
        """The claim of a cookie, or None when it is none of ours."""
        key_id, _, rest = cookie.partition(".")
        ends_at, _, signature = rest.partition(".")
        if not all(part.isascii() and part.isdecimal() and len(part) <= 18 for part in (key_id, ends_at)):
            return None
        return cls(int(key_id), int(ends_at), signature)

    @property
    def cookie(self) -> str:
        return f"{self.key_id}.{self.ends_at}.{self.signature}"

    def is_valid(self, digest: str, now: int) -> bool:
        """Whether the key with this digest signed the claim, and it has not ended."""
        wanted = _sign(digest, f"session {self.key_id} {self.ends_at}")
        is_signed = hmac.compare_digest(wanted.encode(), self.signature.encode())
        return is_signed and now < self.ends_at <= now + LASTS

    def secret(self, digest: str) -> str:
        """The secret that the tokens of this session's forms are keyed by."""
        return _sign(digest, f"forms {self.key_id} {self.ends_at}")


@dataclass(frozen=True)
class Visitor:
    """Who looks at a page. `caller` is None for who must sign in first; `secret` keys the tokens of forms."""

    caller: Caller | None
    secret: str
    is_signed_in: bool = False

    @property
    def scopes(self) -> frozenset[KeyScope]:
        return self.caller.scopes if self.caller else frozenset()

    @property
    def may_do_all(self) -> bool:
        return self.scopes == ALL_SCOPES

    @property
    def form_token(self) -> str:
        return _sign(self.secret, "form")

    def is_own_token(self, token: str) -> bool:
        return hmac.compare_digest(self.form_token.encode(), token.encode())

    def sign_message(self, text: str) -> str:
        """A message for the next page, which only this visitor's server can have written."""
        return f"{_sign(self.secret, f'message {text}')}.{text}"

    def read_message(self, signed: str) -> str:
        """The message, or nothing when another site or port has set the cookie."""
        signature, _, text = signed.partition(".")
        wanted = _sign(self.secret, f"message {text}")
        return text if hmac.compare_digest(wanted.encode(), signature.encode()) else ""


def _sign(secret: str, text: str) -> str:
    return hmac.new(secret.encode(), text.encode(), "sha256").hexdigest()
