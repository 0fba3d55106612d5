"""Pictures of a conversation, as a model can be handed them."""

import base64
import binascii
import re

SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
DATA_URI = re.compile(r"data:image/[\w.+-]+;base64,", re.IGNORECASE)


def picture(image: str) -> str:
    """An http(s) URL or a data URI of the picture; nothing when it is none that models read.

    Callers send URLs, data URIs and bare base64. What the bytes are is told by the bytes.

    >>> picture("iVBORw0KGgo=")
    'data:image/png;base64,iVBORw0KGgo='
    >>> picture("a cat")
    ''
    """
    if image.startswith(("http://", "https://")):
        return image
    encoded = "".join(DATA_URI.sub("", image, count=1).split())
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return ""
    kind = _kind(content)
    return f"data:{kind};base64,{encoded}" if kind else ""


def _kind(content: bytes) -> str:
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for signature, kind in SIGNATURES.items() if content.startswith(signature)), "")
