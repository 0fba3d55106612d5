"""Log records that callers cannot forge: what they chose never begins a line, moves the cursor or hides text."""

import logging
import traceback
from collections.abc import Mapping
from typing import Any

from reflexio.models.wording import escape_hidden

TRACE = "  | "
"""Before each line of a traceback: its message may be a caller's, and would look like a line of the log."""


class OneLineRecord(logging.LogRecord):
    """A record whose message is one line. Controls, line feeds, bidi and tag characters are shown as escapes."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # Arguments only: uvicorn colours its own formats.
        if isinstance(self.args, Mapping):
            self.args = {name: _safe(value) for name, value in self.args.items()}
        elif self.args:
            self.args = tuple(map(_safe, self.args))
        else:
            self.msg = _safe(str(self.msg).rstrip("\n"))
        if self.exc_info and self.exc_info[0]:
            lines = "".join(traceback.format_exception(*self.exc_info)).splitlines()
            self.exc_text = "\n".join(f"{TRACE}{escape_hidden(line)}" for line in lines)


def _safe(value: Any) -> Any:
    return value if isinstance(value, int | float) or value is None else escape_hidden(str(value))


def install() -> None:
    """Makes all records of this process such records."""
    logging.setLogRecordFactory(OneLineRecord)
