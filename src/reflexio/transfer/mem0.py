"""Memories of mem0, as `get_all`, a search or a memory export returns them, as profiles.

A memory has `memory`, `user_id`, `created_at`, `updated_at`, `categories`, `metadata` and `expiration_date`. They stand
in a list, or under `results` (`memories` in an export with a schema of one's own, in which the text may be `content`).
"""

from typing import Any

from reflexio.transfer.foreign import Row, Translation, digest, entries, profile, seconds

SYSTEM = "mem0"
LISTS = ("results", "memories")
TEXTS = ("memory", "content", "text", "data")


def is_mem0(document: Any) -> bool:
    """Whether a document looks like one of mem0."""
    rows = entries(document, LISTS)
    return (bool(rows) and any("memory" in row for row in rows or ())) or (
        isinstance(document, dict) and "results" in document
    )


def translate(document: Any, user_id: str = "") -> Translation:
    """All memories that belong to a user: to the one they name, else to `user_id`."""
    result = Translation()
    for row in entries(document, LISTS) or ():
        text = next((row[name] for name in TEXTS if isinstance(row.get(name), str) and row[name].strip()), "")
        owner = str(row.get("user_id") or user_id or "").strip()
        if not text:
            result.skip("memories without text")
        elif not owner:
            result.skip("memories without a user_id (give --user)")
        else:
            result.rows.append(_memory(row, owner, text))
    return result


def _memory(row: Row, owner: str, text: str) -> Row:
    metadata = row.get("metadata")
    categories = row.get("categories")
    tags = [str(each) for each in categories if each] if isinstance(categories, list) else []
    return profile(
        SYSTEM,
        str(row.get("id") or digest(owner, text)),
        owner,
        text,
        created_at=seconds(row.get("created_at")),
        modified_at=seconds(row.get("updated_at")),
        expires_at=seconds(row.get("expiration_date")),
        tags=tags,
        custom_features=metadata if isinstance(metadata, dict) else None,
    )
