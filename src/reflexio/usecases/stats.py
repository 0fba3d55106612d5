"""Stats: how much is stored, and for whom the caller speaks."""

from datetime import UTC, datetime

from reflexio.models.config import StorageStatsResponse, WhoamiResponse
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Database, Store, Tx


def whoami(database: Database, store: Store) -> WhoamiResponse:
    return WhoamiResponse(org_id=store.org_id, storage_type=database.type, storage_label=database.label)


async def storage(store: Store, clock: Clock, user_id: str) -> StorageStatsResponse:
    now = clock.now()

    def look(tx: Tx) -> StorageStatsResponse:
        learned = tx.learnings.tally(user_id, now)
        return StorageStatsResponse(
            profile_count=learned.profiles,
            playbook_count=learned.playbooks,
            interaction_count=tx.interactions.count(user_id),
            unembedded_count=learned.unembedded + tx.interactions.count_unembedded(user_id),
            request_count=tx.requests.count(user_id),
            oldest_profile_modified=_iso(learned.oldest_profile),
            newest_profile_modified=_iso(learned.newest_profile),
        )

    return await store.read(look)


def _iso(moment: int) -> str | None:
    return datetime.fromtimestamp(moment, UTC).isoformat() if moment else None
