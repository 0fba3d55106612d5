"""Small things kept under a key: the configuration and the receipts of idempotent calls."""

from sqlalchemy import Connection, Insert, delete, select

from reflexio.ports.storage import Receipt
from reflexio.storage.hot import Hot
from reflexio.storage.schema import configs, receipts
from reflexio.storage.upsert import insert_for, put


def _once(dialect: str) -> Insert:
    insert = insert_for(dialect)
    return insert(receipts).on_conflict_do_nothing()


ONCE = Hot(_once, ["org_id", "key", "created_at", "fingerprint", "answer"])


class SqlConfigs:
    def __init__(self, connection: Connection, org_id: str) -> None:
        self._connection = connection
        self._org = org_id

    def get(self) -> str | None:
        query = select(configs.c.document).where(configs.c.org_id == self._org)
        return self._connection.execute(query).scalar_one_or_none()

    def put(self, document: str, now: int) -> None:
        put(self._connection, configs, {"org_id": self._org, "document": document, "updated_at": now})


def configured(connection: Connection) -> list[str]:
    return list(connection.execute(select(configs.c.org_id).order_by(configs.c.org_id)).scalars())


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

    def add(self, key: str, receipt: Receipt, now: int) -> bool:
        row = {"org_id": self._org, "key": key, "created_at": now}
        row |= {"fingerprint": receipt.fingerprint, "answer": receipt.answer}
        return ONCE.run(self._connection, [row]) > 0


def forget_receipts(connection: Connection, before: int) -> int:
    return connection.execute(delete(receipts).where(receipts.c.created_at < before)).rowcount
