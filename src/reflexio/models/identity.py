"""Names for new things: as unlikely to repeat as a UUID, and made without asking the operating system each time.

They are no secrets: whoever asks for a row must be of its organisation.
"""

import random
from uuid import UUID

# Seeded by the operating system, once. A call into it lets other threads run first: they may take their time.
_chance = random.Random()


def new_id() -> str:
    return str(UUID(int=_chance.getrandbits(128), version=4))
