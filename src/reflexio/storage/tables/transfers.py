"""All rows of an organisation in the order of their numbers, for its export, and turns of an import."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import select, update

from reflexio.models.interaction import Request
from reflexio.models.learning import Kind, Learning
from reflexio.models.transfer import TransferredTurn
from reflexio.ports.storage import LineageEvent
from reflexio.ports.storage.transfers import StoredRequest
from reflexio.storage.queries import OrganisationRows, attributes, fitting, in_batches, written_bytes
from reflexio.storage.schema import interactions, learnings, lineage, pools, requests
from reflexio.storage.tables.interactions import ADD_TURN, LISTS, REQUEST_FIELDS, turn_row
from reflexio.storage.tables.learnings import COLUMNS, LINEAGE_FIELDS, read_learning

FLAGS = ("is_learned", "profiles_unread", "playbooks_unread")
TURN_FIELDS = [name for name in TransferredTurn.model_fields if name not in (*FLAGS, *LISTS)]
TURN_COLUMNS = [interactions.c[name] for name in ("id", *TURN_FIELDS, *LISTS, *FLAGS)]


class SqlTransfers(OrganisationRows):
    def counts(self) -> dict[str, int]:
        tables = {"learnings": learnings, "requests": requests, "turns": interactions}
        return {name: self._count(table, table.c.org_id == self._org) for name, table in tables.items()}

    def learnings(self, after: int, limit: int, most_bytes: int) -> list[Learning]:
        query = select(*COLUMNS).where(learnings.c.org_id == self._org, learnings.c.id > after)
        with self._connection.execute(query.order_by(learnings.c.id).limit(limit + 1)) as rows:
            shown, _ = fitting(rows, limit, most_bytes)
        return [read_learning(row) for row in shown]

    def requests(self, after: int, limit: int, most_bytes: int) -> list[StoredRequest]:
        columns = [requests.c.id, *(requests.c[name] for name in REQUEST_FIELDS)]
        query = select(*columns).where(requests.c.org_id == self._org, requests.c.id > after)
        stored: list[StoredRequest] = []
        for row in self._connection.execute(query.order_by(requests.c.id).limit(limit)).all():
            turns, size = self._turns(row.request_id)
            if stored and size > most_bytes:
                break
            most_bytes -= size
            request = Request.model_construct(**attributes(row, REQUEST_FIELDS))
            stored.append(StoredRequest(row.id, request, turns))
        return stored

    def _turns(self, request_id: str) -> tuple[list[dict[str, Any]], int]:
        """The turns of a request, and how long they are."""
        own = interactions.c.org_id == self._org, interactions.c.request_id == request_id
        rows = self._connection.execute(select(*TURN_COLUMNS).where(*own).order_by(interactions.c.id)).all()
        turns = [{name: value for name, value in row._mapping.items() if value is not None} for row in rows]
        return turns, sum(map(written_bytes, rows))

    def lineage(self, learning_ids: Sequence[int]) -> dict[int, list[LineageEvent]]:
        events: dict[int, list[LineageEvent]] = defaultdict(list)
        for batch in in_batches(learning_ids):
            query = select(lineage).where(lineage.c.org_id == self._org, lineage.c.learning_id.in_(batch))
            for row in self._connection.execute(query.order_by(lineage.c.id)):
                fields = attributes(row, LINEAGE_FIELDS)
                event = LineageEvent(kind=Kind(row.kind), at=row.created_at, details=row.details or {}, **fields)
                events[row.learning_id].append(event)
        return events

    def pools(self) -> list[tuple[str, str]]:
        place = pools.c.agent_version, pools.c.name
        query = select(*place).where(pools.c.org_id == self._org, pools.c.clusters > 0).order_by(*place)
        return [(row.agent_version, row.name) for row in self._connection.execute(query)]

    def cluster_members(self, agent_version: str, name: str) -> dict[int, list[int]]:
        column, members = learnings.c, dict[int, list[int]]()
        pool = column.org_id == self._org, column.agent_version == agent_version, column.name == name
        query = select(column.id, column.cluster).where(*pool, column.cluster > 0)
        for row in self._connection.execute(query.order_by(column.cluster, column.id)):
            members.setdefault(row.cluster, []).append(row.id)
        return members

    def add_turns(self, request: Request, turns: Sequence[TransferredTurn]) -> list[int]:
        ADD_TURN.run(self._connection, [turn_row(self._org, request, turn) for turn in turns])
        numbers = self.turn_numbers(request.request_id)
        for number, turn in zip(numbers, turns, strict=True):
            flags = {name: getattr(turn, name) for name in FLAGS}
            if any(flags.values()):
                self._change(update(interactions).where(interactions.c.id == number).values(**flags))
        return numbers

    def turn_numbers(self, request_id: str) -> list[int]:
        own = interactions.c.org_id == self._org, interactions.c.request_id == request_id
        return self._scalars(select(interactions.c.id).where(*own).order_by(interactions.c.id))
