"""Log records that callers cannot forge: what they chose never begins a line, moves the cursor or hides text."""

import json
import logging
import traceback
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from reflexio.models.wording import escape_hidden
from reflexio.settings import Settings

TRACE = "  | "
"""Before each line of a traceback: its message may be a caller's, and would look like a line of the log."""


REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that this code runs for."""


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


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the id of the request and the traceback if any."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        entry = {"time": moment, "level": record.levelname.lower(), "logger": record.name}
        entry["message"] = record.getMessage()
        if request_id := REQUEST_ID.get():
            entry["request_id"] = request_id
        if record.exc_info and record.exc_info[0]:
            entry["exception"] = "".join(traceback.format_exception(*record.exc_info))
        return json.dumps(entry)  # in ASCII: a lone surrogate in a message must not lose the line


def install(settings: Settings) -> None:
    """Makes all records of this process such records, and writes them in the format of the settings."""
    logging.setLogRecordFactory(OneLineRecord)
    if settings.log_format == "json":
        handler = logging.StreamHandler()
        handler.setFormatter(JsonFormatter())
        logging.root.handlers[:] = [handler]
        level: int = logging.getLevelNamesMapping()[settings.log_level.upper()]
        logging.root.setLevel(max(logging.WARNING, level))
        logging.getLogger("reflexio").setLevel(level)
