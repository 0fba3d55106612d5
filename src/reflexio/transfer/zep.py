"""Facts and messages of Zep, as its graph and thread calls return them: facts become profiles, threads publishes.

An edge of the graph has `fact`, `uuid`, `created_at`, `valid_at`, `invalid_at` and `expired_at`, under `edges` or in a
list. A thread has `messages` with `role`, `content`, `uuid` and `created_at`; the memory of a session in earlier
versions has `role_type`, and also `facts` or `relevant_facts`. None of them names a user: a document may say `user_id`
beside them, else the caller says whose they are. Several documents may stand in a list.
"""

from typing import Any

from reflexio.models.transfer import MOST_ROWS
from reflexio.models.wire import epoch_now
from reflexio.transfer.foreign import Row, Translation, digest, profile, seconds

SYSTEM = "zep"
FACTS = ("edges", "facts", "relevant_facts")
THREADS = ("threads", "sessions", "users", "results")
ROLES = {"user": "User", "human": "User", "assistant": "Agent", "ai": "Agent", "agent": "Agent"}


def is_zep(document: Any) -> bool:
    """Whether a document looks like one of Zep."""
    if isinstance(document, list):
        return any(map(is_zep, document))
    return isinstance(document, dict) and any(name in document for name in (*FACTS, "fact", "messages"))


def translate(document: Any, user_id: str = "") -> Translation:
    """All facts that still hold, and all messages, with the user of their document or `user_id`."""
    result = Translation()
    _translate(document, user_id, "", result)
    return result


def _translate(document: Any, user_id: str, thread: str, result: Translation) -> None:
    if isinstance(document, list):
        for part in document:
            _translate(part, user_id, thread, result)
        return
    if not isinstance(document, dict):
        return
    owner = str(document.get("user_id") or user_id or "").strip()
    thread = str(document.get("thread_id") or document.get("session_id") or thread)
    if "fact" in document:
        _fact(document, owner, result)
        return
    for name in FACTS:
        for fact in document[name] if isinstance(document.get(name), list) else ():
            _fact(fact if isinstance(fact, dict) else {"fact": fact}, owner, result)
    messages = document.get("messages")
    if isinstance(messages, list) and messages:
        _messages([row for row in messages if isinstance(row, dict)], owner, thread, result)
    for name in THREADS:
        if isinstance(document.get(name), list):
            _translate(document[name], owner, thread, result)


def _fact(row: Row, owner: str, result: Translation) -> None:
    text = row.get("fact")
    if not isinstance(text, str) or not text.strip():
        result.skip("facts without text")
    elif row.get("invalid_at") or row.get("expired_at"):
        result.skip("facts that no longer hold")
    elif not owner:
        result.skip("facts without a user_id (give --user)")
    else:
        created_at = seconds(row.get("valid_at")) or seconds(row.get("created_at"))
        name = str(row.get("uuid") or digest(owner, text))
        result.rows.append(profile(SYSTEM, name, owner, text, created_at=created_at))


def _messages(rows: list[Row], owner: str, thread: str, result: Translation) -> None:
    turns = [turn for row in rows if (turn := _turn(row))]
    for _ in range(len(rows) - len(turns)):
        result.skip("messages without text")
    if not owner:
        for _ in turns:
            result.skip("messages without a user_id (give --user)")
        return
    session = thread or f"{SYSTEM}-{digest(owner, *(row.get('uuid') for row in rows))}"
    for start in range(0, len(turns), MOST_ROWS):
        part = turns[start : start + MOST_ROWS]
        result.rows.append(
            {
                "type": "request",
                "request_id": f"{SYSTEM}-{digest(owner, session, start)}",
                "user_id": owner,
                "session_id": session[:255],
                "source": SYSTEM,
                "created_at": part[-1]["created_at"],
                "session_finished": start + MOST_ROWS >= len(turns),
                "turns": part,
            }
        )


def _turn(row: Row) -> Row | None:
    text = row.get("content")
    if not isinstance(text, str) or not text.strip():
        return None
    role = str(row.get("role_type") or row.get("role") or "user")
    return {
        "role": ROLES.get(role.strip().lower(), role.strip().capitalize()),
        "content": text,
        "created_at": seconds(row.get("created_at")) or epoch_now(),
        "is_learned": False,
    }
