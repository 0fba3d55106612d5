"""Small things kept under a key: the configuration and the receipts of idempotent calls."""

from sqlalchemy import Connection, delete, insert, select

from reflexio.ports.storage import Receipt
from reflexio.storage.schema import configs, receipts
from reflexio.storage.upsert import put

KEPT_FOR = 7 * 86_400
"""Seconds after which a receipt is forgotten; no client repeats a publish that late."""


class SqlConfigs:
    def __init__(self, connection: Connection, org_id: str) -> None:
        self._connection = connection
        self._org = org_id

    def get(self) -> str | None:
        query = select(configs.c.document).where(configs.c.org_id == self._org)
        return self._connection.execute(query).scalar_one_or_none()

    def put(self, document: str, now: int) -> None:
        put(self._connection, configs, {"org_id": self._org, "document": document, "updated_at": now})


class SqlReceipts:
    def __init__(self, connection: Connection, org_id: str) -> None:
        self._connection = connection
        self._org = org_id

    def get(self, key: str) -> Receipt | None:
        query = select(receipts.c.fingerprint, receipts.c.answer).where(
            receipts.c.org_id == self._org, receipts.c.key == key
        )
        row = self._connection.execute(query).one_or_none()
        return Receipt(*row) if row else None

    def add(self, key: str, receipt: Receipt, now: int) -> None:
        row = {"org_id": self._org, "key": key, "created_at": now}
        self._connection.execute(
            insert(receipts), {**row, "fingerprint": receipt.fingerprint, "answer": receipt.answer}
        )

    def forget_old(self, now: int) -> None:
        old = receipts.c.created_at < now - KEPT_FOR
        self._connection.execute(delete(receipts).where(receipts.c.org_id == self._org, old))
