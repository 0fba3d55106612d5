"""What goes to an assistant and what comes back, the same for every kind of it; and when it is asked again."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from reflexio.errors import AssistantFailed
from reflexio.models.rollout import Guidance, Message

MOST_BYTES = 1024 * 1024
"""Of a reply. No conversation has longer answers."""
LONGEST_BACKOFF = 300.0


class Passing(AssistantFailed):
    """The assistant failed in a way that may pass by itself."""


def payload(messages: Sequence[Message], guidance: Guidance) -> bytes:
    playbook = {"id": guidance.id, "content": guidance.content, "trigger": guidance.trigger}
    said = [{"role": each.role, "content": each.content} for each in messages]
    return json.dumps({"messages": said, "playbooks": [playbook]}).encode()


def content(reply: bytes) -> str:
    """The words of a reply. Other keys than `content` are passed over."""
    try:
        read = json.loads(reply)
    except (ValueError, RecursionError) as error:
        raise AssistantFailed(f'The assistant did not answer with JSON {{"content": "…"}}: {_shown(reply)}') from error
    said = read.get("content") if isinstance(read, dict) else None
    if not isinstance(said, str):
        raise AssistantFailed(f'The assistant\'s JSON has no text under "content": {_shown(reply)}')
    # What no database or model takes becomes a question mark.
    return said.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def too_long() -> AssistantFailed:
    return AssistantFailed(f"The assistant's reply is longer than {MOST_BYTES:,} bytes.")


def _shown(reply: bytes) -> str:
    return repr(reply[:200].decode("utf-8", "replace")) if reply else "nothing came back"


@dataclass(frozen=True)
class Patience:
    """How long one try may take, how often it is repeated, and the pause before that, which doubles."""

    seconds: float = 60.0
    retries: int = 3
    backoff: float = 1.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def __call__(self, attempt: Callable[[], Awaitable[bytes]]) -> bytes:
        tries = 0
        while True:
            try:
                async with asyncio.timeout(self.seconds):
                    return await attempt()
            except TimeoutError:
                failure = Passing(f"The assistant did not answer within {self.seconds:g} s.")
            except Passing as error:
                failure = error
            if tries == self.retries:
                raise failure
            await self.sleep(min(LONGEST_BACKOFF, self.backoff * 2.0**tries))
            tries += 1
