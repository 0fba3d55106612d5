"""For whom an MCP session speaks: the client it calls with, and the user it is bound to."""

from dataclasses import dataclass

from reflexio.client.aio import AsyncReflexioClient
from reflexio.errors import InvalidRequest, ServerUnreachable
from reflexio.models.access import ALL_SCOPES, KeyScope


@dataclass(frozen=True)
class MemoryAccess:
    """The client of a session. With a `user_id` the session is about this user alone, and its tools take none.

    Decisions are recorded under the owner of the key; under `reviewer` when it has none.
    """

    client: AsyncReflexioClient
    user_id: str = ""
    agent_version: str = ""
    reviewer: str = ""

    async def scopes(self) -> frozenset[KeyScope]:
        """What the key may do. All that there is while no server answers, so that a host that starts first lists it."""
        try:
            return frozenset((await self.client.whoami()).scopes)
        except ServerUnreachable:
            return ALL_SCOPES

    def user(self, user_id: str) -> str:
        """The user that a call is about. A session that is bound to a user refuses others."""
        if self.user_id and user_id not in ("", self.user_id):
            raise InvalidRequest(f"This connection is bound to the user {self.user_id!r}; leave user_id out.")
        return self.user_id or user_id
