"""Learnings: profiles, user playbooks and agent playbooks in one table."""

from sqlalchemy import Connection, delete, func, select

from reflexio.ports.storage import Tally
from reflexio.storage.schema import learnings

OF_A_USER = {"profile": "profiles", "user_playbook": "user_playbooks"}


class SqlLearnings:
    def __init__(self, connection: Connection, org_id: str) -> None:
        self._connection = connection
        self._org = org_id

    def tally(self, user_id: str) -> Tally:
        query = (
            select(
                learnings.c.kind,
                func.count(),
                func.min(learnings.c.modified_at),
                func.max(learnings.c.modified_at),
            )
            .where(
                learnings.c.org_id == self._org,
                learnings.c.user_id == user_id,
                learnings.c.kind.in_(OF_A_USER),
                learnings.c.status == "current",
            )
            .group_by(learnings.c.kind)
        )
        found = {row[0]: row[1:] for row in self._connection.execute(query)}
        profiles, oldest, newest = found.get("profile", (0, 0, 0))
        return Tally(profiles, found.get("user_playbook", (0, 0, 0))[0], oldest, newest)

    def remove_user(self, user_id: str) -> dict[str, int]:
        return {
            name: self._connection.execute(
                delete(learnings).where(
                    learnings.c.org_id == self._org, learnings.c.kind == kind, learnings.c.user_id == user_id
                )
            ).rowcount
            for kind, name in OF_A_USER.items()
        }
