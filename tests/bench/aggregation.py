"""What aggregation costs: one model call a changed cluster, none for what did not change."""

import time
from typing import Any

from reflexio import ReflexioClient
from reflexio.models.review import RunPlaybookAggregationResponse
from tests.bench.learning import server
from tests.bench.report import Figure
from tests.scripted_model import Answer, Asked, ScriptedModel, scripted_model

THINGS = (
    *("parcel", "invoice", "refund", "password", "lamp", "subscription", "voucher", "warranty", "colour", "delivery"),
    *("address", "newsletter", "discount", "receipt", "battery", "chair", "garden", "printer", "holiday", "contract"),
)
WORDINGS = (
    "A customer asks about the {}",
    "Somebody wants to know about their {}",
    "There is a question about the {}",
    "The {} is what a customer asks about",
    "Customers who ask about a {}",
)
VERSION = "v1"


def rule(asked: Asked) -> Answer:
    return {"rule": {"trigger": "A question", "content": f"Answer it, {len(asked.case)}.", "rationale": "Asked."}}


def taught(thing: str, wording: str, user: str) -> dict[str, Any]:
    trigger, content = wording.format(thing), f"Look up the {thing} before you answer about the {thing}."
    return {"user_id": user, "agent_version": VERSION, "trigger": trigger, "content": content}


def aggregation() -> list[Figure]:
    rows = [taught(thing, each, f"{thing}-{n}") for thing in THINGS for n, each in enumerate(WORDINGS)]
    with scripted_model(otherwise=rule) as model, server(model) as url, ReflexioClient(url_endpoint=url) as client:
        client.add_user_playbook(rows)
        first, first_calls, first_seconds = _run(client, model)
        _, again_calls, again_seconds = _run(client, model)
        client.add_user_playbook([taught("parcel", "A customer asks where the {} is", "somebody-new")])
        _, new_calls, _ = _run(client, model)
    name = f"{len(rows)} playbooks of {len(THINGS)} matters"
    return [
        Figure(f"{name}: clusters", first.clusters_found, ""),
        Figure(f"{name}: model calls a cluster", first_calls / max(1, first.clusters_found), "", 1),
        Figure(f"{name}: seconds", first_seconds, "s"),
        Figure("model calls of a repetition on unchanged data", again_calls, "", 0, baseline="all of them again"),
        Figure("seconds of a repetition on unchanged data", again_seconds, "s"),
        Figure("model calls after one new playbook", new_calls, "", 1, baseline="all of them again"),
    ]


def _run(client: ReflexioClient, model: ScriptedModel) -> tuple[RunPlaybookAggregationResponse, int, float]:
    before, began = model.calls, time.perf_counter()
    done = client.run_playbook_aggregation(agent_version=VERSION, wait_for_response=True)
    assert done.is_complete, done.message
    return done, model.calls - before, time.perf_counter() - began
