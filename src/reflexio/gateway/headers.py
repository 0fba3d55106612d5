"""Which headers pass, in both directions. Keys and cookies are never copied: `relay` says which key goes upstream."""

import re
from collections.abc import Iterable, Iterator

from reflexio.gateway.answer import READABLE_ENCODINGS

Headers = list[tuple[bytes, bytes]]
REFLEXIO_KEY = re.compile(rb"rfx_[\w-]{8}")

HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
REPLACED = frozenset((b"host", b"content-length", b"authorization", b"accept-encoding", b"expect"))
OF_THIS_HOP = frozenset((b"cookie", b"origin", b"referer", b"forwarded", b"via", b"x-real-ip", b"true-client-ip"))
PREFIXES_OF_THIS_HOP = (b"x-reflexio-", b"x-forwarded-", b"x-client-ip", b"cf-", b"sec-fetch-")
"""What is between the caller and this server: names, addresses and cookies that are no business of the model's."""
OF_THE_UPSTREAM_HOST = frozenset(
    (b"set-cookie", b"alt-svc", b"strict-transport-security", b"date", b"server", b"nel", b"report-to")
)
REQUEST_ID, UPSTREAM_REQUEST_ID = b"x-request-id", b"x-upstream-request-id"


def upstream_headers(headers: Iterable[tuple[bytes, bytes]], authorization: str, reflexio_key: str = "") -> Headers:
    """The headers of the call to the model server, with the key that was chosen for it. None holds a key of ours."""
    given = [(name, value) for name, value in headers if not _holds_key(value, reflexio_key)]
    dropped = HOP_BY_HOP | REPLACED | OF_THIS_HOP | _named_by_connection(given)
    passed = [
        (name, value) for name, value in given if name not in dropped and not name.startswith(PREFIXES_OF_THIS_HOP)
    ]
    encodings = b"".join(value + b"," for name, value in given if name == b"accept-encoding")
    passed.append((b"accept-encoding", _readable(encodings.decode("latin-1")).encode()))
    return [*passed, (b"authorization", authorization.encode("latin-1"))] if authorization else passed


def caller_headers(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """The headers of the answer. The model server's request id gets a name of its own, beside ours."""
    given = [(name.lower(), value) for name, value in headers]
    dropped = HOP_BY_HOP | OF_THE_UPSTREAM_HOST | _named_by_connection(given)
    for name, value in given:
        if name not in dropped:
            yield UPSTREAM_REQUEST_ID if name == REQUEST_ID else name, value


def _holds_key(value: bytes, reflexio_key: str) -> bool:
    """Whether a key of ours is in it, wherever a client puts what it was given as its key."""
    return REFLEXIO_KEY.search(value) is not None or bool(reflexio_key and reflexio_key.encode("latin-1") in value)


def _readable(accepted: str) -> str:
    """The encodings that the caller accepts and that can be read for publishing. The answer itself is not changed."""
    names = (encoding.partition(";")[0].strip().lower() for encoding in accepted.split(","))
    return ", ".join(dict.fromkeys(name for name in names if name in READABLE_ENCODINGS)) or "identity"


def _named_by_connection(headers: Headers) -> frozenset[bytes]:
    return frozenset(
        name.strip().lower() for key, value in headers if key == b"connection" for name in value.split(b",")
    )
