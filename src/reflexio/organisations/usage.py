"""What an organisation has spent and stores, whether its token budget allows more, and for whom a caller speaks."""

from datetime import UTC, datetime

from reflexio.jobs import token_budget
from reflexio.models.access import Caller, KeyScope
from reflexio.models.config import StorageStatsResponse, WhoamiResponse
from reflexio.models.usage import UsageEntry, UsageResponse
from reflexio.organisations.configuration import stored_config
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Database, Store, Tx


def is_within_budget(tx: Tx, now: int) -> bool:
    """Whether today's token budget, as configured now, allows another call."""
    return token_budget.allowed(tx, stored_config(tx), now)


async def usage(store: Store, clock: Clock, days: int) -> UsageResponse:
    """The last days including today, newest first."""
    now = clock.now()

    def read(tx: Tx) -> UsageResponse:
        config = stored_config(tx)
        spent = tx.spending.since(token_budget.day_of(now, days_ago=days - 1))
        return UsageResponse(
            usage=[UsageEntry.of(entry) for entry in spent],
            tokens_today=token_budget.tokens(token_budget.today(tx, now)),
            daily_token_budget=config.daily_token_budget,
            max_daily_tokens=tx.spending.max_daily_tokens,
            budget_used_up=not token_budget.allowed(tx, config, now),
        )

    return await store.read(read)


def whoami(database: Database, caller: Caller) -> WhoamiResponse:
    scopes = [scope for scope in KeyScope if scope in caller.scopes]
    return WhoamiResponse(
        org_id=caller.org_id,
        scopes=scopes,
        owner=caller.owner,
        storage_type=database.type,
        storage_label=database.label,
    )


async def storage_stats(store: Store, clock: Clock, user_id: str) -> StorageStatsResponse:
    now = clock.now()

    def read(tx: Tx) -> StorageStatsResponse:
        counts = tx.learnings.count_learnings(user_id, now)
        return StorageStatsResponse(
            profile_count=counts.profiles,
            playbook_count=counts.playbooks,
            interaction_count=tx.interactions.count(user_id),
            unembedded_count=counts.unembedded + tx.interactions.count_unembedded(user_id),
            unread_count=tx.interactions.count_unread(user_id),
            redacted_count=tx.requests.sum_redacted(user_id),
            request_count=tx.requests.count(user_id),
            oldest_profile_modified=_iso_date(counts.oldest_profile),
            newest_profile_modified=_iso_date(counts.newest_profile),
        )

    return await store.read(read)


def _iso_date(seconds: int) -> str | None:
    return datetime.fromtimestamp(seconds, UTC).isoformat() if seconds else None
