"""What exports of other systems have in common: JSON or JSON lines, times in several forms, rows of ours as lines."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from reflexio.client.transfer import FORMAT, VERSION
from reflexio.errors import InvalidRequest
from reflexio.models.wire import NEVER_EXPIRES, epoch_now

Row = dict[str, Any]


@dataclass
class Translation:
    """Rows of an export of ours, and what of the other system's document was left out, with how often."""

    rows: list[Row] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)

    def skip(self, reason: str) -> None:
        self.skipped[reason] = self.skipped.get(reason, 0) + 1

    def lines(self) -> Iterator[str]:
        """The rows as a file that an import reads: learnings first."""
        yield json.dumps({"type": "header", "format": FORMAT, "version": VERSION, "counts": {}})
        for kind in ("learning", "request"):
            yield from (json.dumps(row) for row in self.rows if row["type"] == kind)
        yield json.dumps({"type": "end", "counts": {}})


def read_document(text: str) -> Any:
    """One JSON document, or a list of those that stand one in a line."""
    try:
        return json.loads(text)
    except ValueError as error:
        lines = [line for line in text.splitlines() if line.strip()]
        try:
            documents = [json.loads(line) for line in lines]
        except ValueError:
            raise InvalidRequest(f"The file is neither JSON nor JSON lines: {error}") from error
        return documents


def profile(system: str, name: str, user_id: str, content: str, **fields: Any) -> Row:
    """A fact about a user. Its id is that of the other system, so that it is recognised when it comes again."""
    created_at = fields.pop("created_at", 0) or epoch_now()
    details = {"profile_time_to_live": "infinity"}
    if features := fields.pop("custom_features", None):
        details["custom_features"] = features
    return {
        "type": "learning",
        "kind": "profile",
        "key": f"{system}-{name}"[:255],
        "user_id": user_id,
        "source": system,
        "content": content.strip(),
        "details": details,
        "created_at": created_at,
        "modified_at": fields.pop("modified_at", 0) or created_at,
        "expires_at": fields.pop("expires_at", 0) or NEVER_EXPIRES,
        **fields,
    }


def seconds(value: Any) -> int:
    """A time as other systems write it, in seconds since 1970; 0 when there is none or it cannot be read.

    >>> seconds("2026-03-01T10:00:00Z"), seconds("2026-03-01"), seconds(1772359200000), seconds(None), seconds("soon")
    (1772359200, 1772323200, 1772359200, 0, 0)
    """
    if isinstance(value, bool) or value is None:
        return 0
    if isinstance(value, int | float):
        return int(value / 1000 if value > 100_000_000_000 else value) if value > 0 else 0
    try:
        moment = datetime.fromisoformat(str(value).strip())
    except ValueError:
        return 0
    return max(0, int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()))


def digest(*parts: object) -> str:
    """A name for what has none, the same each time."""
    return sha256(json.dumps([str(part) for part in parts]).encode()).hexdigest()[:24]


def entries(document: Any, names: Iterable[str]) -> list[Row] | None:
    """The rows of a document: a list itself, or under the first of these names."""
    found = document if isinstance(document, list) else None
    if isinstance(document, dict):
        found = next((document[name] for name in names if isinstance(document.get(name), list)), None)
    return None if found is None else [row for row in found if isinstance(row, dict)]
