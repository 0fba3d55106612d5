"""Small values under a key: configurations, receipts of idempotent calls, API keys, stalls, and what was spent."""

from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from reflexio.models.access import KeyScope
from reflexio.models.extraction import Spend
from reflexio.models.usage import Spent, Stall
from reflexio.ports.storage import NewApiKey, Receipt, StoredApiKey
from reflexio.storage.compiled import CompiledStatement
from reflexio.storage.queries import OrganisationRows, attributes, insert_for, upsert
from reflexio.storage.schema import configs, keys, receipts, spend, stalls

ADD_RECEIPT = CompiledStatement(
    lambda dialect: insert_for(dialect)(receipts).on_conflict_do_nothing(),
    ["org_id", "key", "created_at", "fingerprint", "answer", "user_id"],
)
KEY_COLUMNS = [keys.c[name] for name in StoredApiKey.__dataclass_fields__]
IS_VALID = keys.c.revoked_at == 0
STALL_FIELDS = ("reason", "message", "since", "notified")
SPEND_COUNTS = ("calls", "input_tokens", "output_tokens", "estimated_calls")


class SqlConfigs(OrganisationRows):
    def get(self) -> str | None:
        query = select(configs.c.document).where(configs.c.org_id == self._org)
        return self._connection.execute(query).scalar_one_or_none()

    def put(self, document: str, now: int) -> None:
        upsert(self._connection, configs, {"org_id": self._org, "document": document, "updated_at": now})


def configured_organisations(connection: Connection) -> list[str]:
    return list(connection.execute(select(configs.c.org_id).order_by(configs.c.org_id)).scalars())


class SqlReceipts(OrganisationRows):
    def get(self, key: str) -> Receipt | None:
        query = select(receipts.c.fingerprint, receipts.c.answer, receipts.c.user_id)
        return self._one(query.where(receipts.c.org_id == self._org, receipts.c.key == key), lambda row: Receipt(*row))

    def add(self, key: str, receipt: Receipt, now: int) -> bool:
        row = {"org_id": self._org, "key": key, "created_at": now}
        row |= attributes(receipt, ("fingerprint", "answer", "user_id"))
        return ADD_RECEIPT.run(self._connection, [row]) > 0


class SqlKeys:
    """API keys of all organisations. Only a digest of the token is stored."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, key: NewApiKey, now: int) -> StoredApiKey:
        row = attributes(key, ("org_id", "label", "prefix", "digest", "owner"))
        row |= {"scopes": ",".join(scope for scope in KeyScope if scope in key.scopes), "created_at": now}
        return _stored_key(self._connection.execute(insert(keys).returning(*KEY_COLUMNS), row).one())

    def find(self, digest: str) -> StoredApiKey | None:
        row = self._connection.execute(select(*KEY_COLUMNS).where(keys.c.digest == digest, IS_VALID)).one_or_none()
        return _stored_key(row) if row else None

    def digest_of(self, key_id: int) -> str | None:
        query = select(keys.c.digest).where(keys.c.id == key_id, IS_VALID)
        return self._connection.execute(query).scalar_one_or_none()

    def is_revoked(self, digest: str) -> bool:
        query = select(keys.c.id).where(keys.c.digest == digest, keys.c.revoked_at != 0)
        return self._connection.execute(query).first() is not None

    def list(self) -> list[StoredApiKey]:
        query = select(*KEY_COLUMNS).where(IS_VALID).order_by(keys.c.id)
        return [_stored_key(row) for row in self._connection.execute(query)]

    def revoke(self, key_id: int, now: int) -> bool:
        change = update(keys).where(keys.c.id == key_id, IS_VALID).values(revoked_at=now)
        return self._connection.execute(change).rowcount > 0


def _stored_key(row: Row[Any]) -> StoredApiKey:
    values = row._asdict()
    scopes = values["scopes"].split(",")
    return StoredApiKey(**{**values, "scopes": frozenset(scope for scope in KeyScope if scope in scopes)})


class SqlStalls(OrganisationRows):
    def get(self) -> Stall | None:
        query = select(*(stalls.c[name] for name in STALL_FIELDS)).where(stalls.c.org_id == self._org)
        return self._one(query, lambda row: Stall(*row))

    def put(self, stall: Stall) -> None:
        upsert(self._connection, stalls, {"org_id": self._org, **attributes(stall, STALL_FIELDS)})

    def remove(self) -> bool:
        return self._change(delete(stalls).where(stalls.c.org_id == self._org)) > 0


class SqlSpending(OrganisationRows):
    """Calls and tokens, added up by day, operation and model; and the operator's cap on the tokens of a day."""

    def __init__(self, connection: Connection, org_id: str, max_daily_tokens: int | None) -> None:
        super().__init__(connection, org_id)
        self.max_daily_tokens = max_daily_tokens

    def add(self, day: str, operation: str, cost: Spend) -> None:
        statement = insert_for(self._connection.dialect.name)(spend)
        row = {"org_id": self._org, "day": day, "operation": operation, "model": cost.model}
        sums = {name: spend.c[name] + statement.excluded[name] for name in SPEND_COUNTS}
        primary = [column.name for column in spend.primary_key]
        addition = statement.on_conflict_do_update(index_elements=primary, set_=sums)
        self._connection.execute(addition, {**row, **attributes(cost, SPEND_COUNTS)})

    def since(self, day: str) -> list[Spent]:
        column = spend.c
        query = select(column.day, column.operation, column.model, *(column[name] for name in SPEND_COUNTS))
        query = query.where(column.org_id == self._org, column.day >= day)
        rows = self._connection.execute(query.order_by(column.day.desc(), column.operation, column.model))
        return [Spent(day, operation, Spend(*cost)) for day, operation, *cost in rows]

    def total(self, day: str) -> Spend:
        sums = [func.coalesce(func.sum(spend.c[name]), 0) for name in SPEND_COUNTS]
        query = select(*sums).where(spend.c.org_id == self._org, spend.c.day == day)
        return Spend("", *map(int, self._connection.execute(query).one()))
