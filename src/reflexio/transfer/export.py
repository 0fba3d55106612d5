"""One page of an organisation's rows: all learnings, then all publishes, then what learnings refer to, then clusters.

Rows carry the numbers of the learnings and turns that they refer to, and their own as `number`.
"""

from typing import Any

from reflexio.models.config import MASK
from reflexio.models.learning import Learning
from reflexio.models.paging import MOST_BYTES
from reflexio.models.transfer import ExportRowsRequest, ExportRowsResponse
from reflexio.organisations.configuration import stored_config
from reflexio.ports.storage import LineageEvent, Store, StoredRequest, Tx

REFERENCES = (
    "source_interaction_ids",
    "window_interaction_ids",
    "source_windows",
    "replaces",
    "superseded_by",
    "merged_into",
)
"""The details of a learning that refer to other rows. Links have them; the row itself does not."""
SECRET = ("api_key_config", "webhook_auth_header")
"""Settings that are left out as a whole, so that an export is the same whether they are set or not."""
Row = dict[str, Any]


async def export_rows(store: Store, request: ExportRowsRequest) -> ExportRowsResponse:
    """A page of one part. The response has no `next_after` behind the last row."""
    match request.part:
        case "summary":
            return ExportRowsResponse(counts=await store.read(lambda tx: tx.transfers.counts()))
        case "configuration":
            return ExportRowsResponse(rows=await store.read(_configuration))
        case "pools":
            return ExportRowsResponse(rows=await store.read(_pools))
        case "requests":
            stored = await store.read(lambda tx: tx.transfers.requests(request.after, request.limit, MOST_BYTES))
            end = stored[-1].number if stored else None
            return ExportRowsResponse(rows=[_request(row) for row in stored], next_after=end)
        case "learnings" | "links":
            return await store.read(lambda tx: _learnings(tx, request))


def _configuration(tx: Tx) -> list[Row]:
    """The stored configuration without its secrets; nothing when none is stored."""
    if tx.configs.get() is None:
        return []
    return [{"configuration": _without_secrets(stored_config(tx).model_dump(mode="json"))}]


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: part for name, part in value.items() if name not in SECRET and part != MASK}
        return {name: _without_secrets(part) for name, part in kept.items()}
    return [_without_secrets(part) for part in value] if isinstance(value, list) else value


def _learnings(tx: Tx, request: ExportRowsRequest) -> ExportRowsResponse:
    # Half of a page: the details that are links come a second time, with the history.
    learnings = tx.transfers.learnings(request.after, request.limit, MOST_BYTES // 2)
    if request.part == "learnings":
        rows = [_learning(learning) for learning in learnings]
    else:
        history = tx.transfers.lineage([learning.id for learning in learnings])
        links = [_links(learning, history.get(learning.id, [])) for learning in learnings]
        rows = [row for row in links if row["details"] or row["events"]]
    return ExportRowsResponse(rows=rows, next_after=learnings[-1].id if learnings else None)


def _learning(learning: Learning) -> Row:
    return {
        "number": learning.id,
        "kind": learning.kind.value,
        "key": learning.key,
        "user_id": learning.user_id,
        "agent_version": learning.agent_version,
        "name": learning.name,
        "source": learning.source,
        "request_id": learning.request_id,
        "status": learning.status.value,
        "review": learning.review.value,
        "scope": learning.scope.value,
        "trigger": learning.trigger,
        "content": learning.content,
        "rationale": learning.rationale,
        "tags": list(learning.tags),
        "details": {name: value for name, value in learning.details.items() if name not in REFERENCES},
        "created_at": learning.created_at,
        "modified_at": learning.modified_at,
        "expires_at": learning.expires_at,
    }


def _links(learning: Learning, events: list[LineageEvent]) -> Row:
    return {
        "learning": learning.id,
        "kind": learning.kind.value,
        "details": {name: value for name, value in learning.details.items() if name in REFERENCES},
        "events": [
            {
                "op": event.op,
                "at": event.at,
                "actor": event.actor,
                "reason": event.reason,
                "from_status": event.from_status,
                "to_status": event.to_status,
                "details": event.details,
            }
            for event in events
        ],
    }


def _request(stored: StoredRequest) -> Row:
    turns = [{("number" if name == "id" else name): value for name, value in turn.items()} for turn in stored.turns]
    return {**stored.request.model_dump(mode="json"), "turns": turns}


def _pools(tx: Tx) -> list[Row]:
    return [_pool(tx, agent_version, name) for agent_version, name in tx.transfers.pools()]


def _pool(tx: Tx, agent_version: str, name: str) -> Row:
    stored = tx.pools.clusters(agent_version, name)
    clusters = [
        {
            "number": number,
            "agent_playbook": stored[number].playbook_id if number in stored else 0,
            "members": ids,
        }
        for number, ids in tx.transfers.cluster_members(agent_version, name).items()
    ]
    return {"agent_version": agent_version, "name": name, "clusters": clusters}
