"""Ids as unique as a UUID, without a call to the operating system for each.

They are not secrets: a caller must belong to the organisation of a row to read it.
"""

import os
import random
import re
from uuid import UUID

# Seeded by the operating system, once. A call into it lets other threads run first: they may take their time.
_chance = random.Random()
if hasattr(os, "register_at_fork"):
    # A forked process would go on with the numbers of its parent, and so would each of its siblings.
    os.register_at_fork(after_in_child=_chance.seed)


def new_id() -> str:
    return str(UUID(int=_chance.getrandbits(128), version=4))


def new_session() -> str:
    """The session of a publish that names none."""
    return f"session-{new_id()}"


def is_generated_session(session: str) -> bool:
    return bool(re.fullmatch(r"session-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", session))
