"""The canary: every text field of every route is filled, every feature runs, the user is erased, and nothing is left.

On a SQLite that does not wipe what it deletes by itself: ours must tell it to. The routes come from the OpenAPI
document, so that no new one can be forgotten.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from reflexio.client.sync import ReflexioClient
from tests import parcels
from tests.acceptance.faults.faulty import FaultyServer, broken_findings, launcher
from tests.acceptance.filled_requests import FilledRequests
from tests.acceptance.test_erasure import (
    CANARY,
    OTHERS,
    USER,
    files_with_canary,
    fill,
    is_verified,
    rows_with_canary,
    text,
    turn,
)
from tests.acceptance.test_isolation import ROUTES, Route
from tests.builders import eventually
from tests.scripted_model import Answer, Asked, scripted_model
from tests.webhook import webhook

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("faults")]

NOT_ABOUT_A_USER = {
    "/api/set_config": "settings of the organisation",
    "/api/update_config": "settings of the organisation",
    "/api/add_agent_playbook": "advice of the organisation; its windows are tried below",
    "/api/update_agent_playbook": "wording of a reviewer",
    "/api/update_agent_playbook_status": "decision of a reviewer",
    "/api/review_agent_playbooks": "words of a reviewer",
    "/api/undo_review": "words of a reviewer",
    "/api/clear_user_data": "the erasure itself",
    "/api/import_rows": "tried below with an export",
    "/mcp": "the same calls in another envelope",
    "/v1/chat/completions": "tried below with a conversation",
    "/v1/responses": "the same in another envelope",
    "/v1/{path}": "passes unread",
}
REFUSED = {
    "/api/downgrade_all_profiles",
    "/api/downgrade_all_user_playbooks",
    "/api/cancel_operation",
    "/api/get_learning_provenance",
}
"""Calls that may find nothing to do."""


def gossip(asked: Asked) -> Answer:
    """A model that repeats users' words wherever it can, but for the rule that concerns everybody."""
    heard = " ".join(sorted(set(re.findall(rf"{CANARY}\w*", asked.case, re.IGNORECASE)))[:5])
    wants = asked.wants
    if "decisions" in wants:
        notes = range(1, asked.case.lower().count("note ") + 1)
        return {"decisions": [{"note": note, "action": "add", "reason": heard} for note in notes or (1,)]}
    if "verdict" in wants:
        opinion = parcels.opinion(asked.case)
        return {**opinion, "rationale": f"{opinion['rationale']} {heard}", "better_in_second": [heard or "It is."]}
    if "content" in wants and "reason" in wants:
        return {**parcels.better(asked.case), "reason": heard}
    if "rule" in wants:
        return {"rule": {"trigger": "A parcel is lost", "content": "Ask the neighbours.", "rationale": "Many say so."}}
    if "profiles" not in wants:
        return {"word": "yes"}
    found = re.findall(r"turn (\d+), user[^\n]*\n([^\n]+)", asked.case)
    proofs = [(line, [{"turn": int(number), "text": line.strip()}]) for number, line in found if CANARY in line.lower()]
    profiles = [{"type": "profile", "content": f"They say: {line}", "evidence": proof} for line, proof in proofs]
    playbooks = [
        {"type": "playbook", "trigger": line, "content": f"Do as in {line}", "rationale": line, "evidence": proof}
        for line, proof in proofs
    ]
    return {"profiles": profiles[:1], "playbooks": playbooks[:1]}


def repeat(payload: dict[str, Any]) -> dict[str, str]:
    """An assistant that says again what the user has said."""
    reply = parcels.reply(payload)
    said = " ".join(message["content"] for message in payload["messages"])
    heard = re.findall(rf"{CANARY}\w*", said, re.IGNORECASE)
    return {"content": f"{reply['content']} {' '.join(heard[:3])}"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyServer]:
    with scripted_model(otherwise=gossip) as model, launcher() as forks:
        environment = {
            "REFLEXIO_MODEL": "openai:scripted",
            "OPENAI_BASE_URL": model.url,
            "OPENAI_API_KEY": "not-a-real-key",
            "REFLEXIO_GATEWAY_URL": model.url,
        }
        server = FaultyServer(forks, tmp_path_factory.mktemp("canary") / "data", environment)
        server.start(keeps_deleted=True)
        try:
            yield server
        finally:
            server.end()


def optimise(client: ReflexioClient) -> None:
    """Replays conversations of the user and of two others, with an assistant and a judge that repeat them."""
    cited = []
    for number, user in enumerate((USER, *OTHERS)):
        said = parcels.conversation(number)
        if user == USER:
            said = [{**each, "content": f"{each['content']} {text('replayed')}"} for each in said]
        published = client.publish_interaction(user, said, agent_version="v3", wait_for_response=True)
        turns = [each for each in client.get_interactions(user).interactions if each.request_id == published.request_id]
        cited.append(sorted(each.interaction_id for each in turns)[2:])
    row = {"content": parcels.INCUMBENT, "trigger": parcels.TRIGGER, "agent_version": "v3"}
    (number_,) = client.add_agent_playbooks([{**row, "source_windows": parcels.windows(cited)}]).ids
    with webhook(repeat) as hook:
        settings = {"enabled": True, "webhook_backoff_base_seconds": 0.0, "webhook_max_retries": 0}
        client.update_config({"playbook_optimizer_config": {**settings, "webhook_url": hook.url}})
        done = client.run_playbook_optimization(agent_playbook_id=int(number_), wait_for_response=True)
        assert done.job is not None
        assert done.job.status == "completed", done.job.decision_reason
        client.update_config({"playbook_optimizer_config": {"enabled": False, "webhook_url": ""}})


def names(client: ReflexioClient) -> dict[str, Any]:
    """Real rows of the user for every field that takes an id."""
    turns = client.get_interactions(USER).interactions
    profile = client.get_profiles(USER, force_refresh=True).user_profiles[0].profile_id
    playbook = client.get_user_playbooks(user_id=USER).user_playbooks[0].user_playbook_id
    rule = client.get_review_queue().items[0].agent_playbook.agent_playbook_id
    return {
        "user_id": USER,
        "profile_id": profile,
        "user_playbook_id": playbook,
        "agent_playbook_id": rule,
        "interaction_id": turns[0].interaction_id,
        "interaction_ids": [turns[0].interaction_id],
        "source_interaction_ids": [turns[0].interaction_id],
        "id": str(profile),
        "kind": "profile",
        "job_id": client.get_playbook_optimizations().jobs[0].job_id,
        "operation_id": "none",
        "role": "User",
        "image_encoding": "",
        "cursor": None,
        "created_at": 1_700_000_000,
        "custom_features": {"note": text("custom")},
        "metadata": {"note": text("metadata")},
        "extractor_names": ["profile"],  # the organisation's own
        "wait_for_response": "true",
    }


def calls(route: Route) -> bool:
    return bool(route.scope) and route.method in ("POST", "PUT") and route.path not in NOT_ABOUT_A_USER


def fill_every_route(server: FaultyServer, client: ReflexioClient) -> set[str]:
    """Calls every route that writes with a canary in each text field; returns the fields that took it."""
    known = {name: value for name, value in names(client).items() if value is not None}
    new = {name: value for name, value in known.items() if name in ("user_id", "role") or not name.endswith("_id")}
    one = {**known, "agent_playbook_id": None}  # the user's own playbook is optimised
    ways = [FilledRequests(values, text) for values in (known, new, one)]
    with httpx.Client(base_url=server.url, timeout=60) as http:
        for route in filter(calls, ROUTES):
            adds = route.path.startswith("/api/add_") or route.path.endswith("publish_interaction")
            answer = ways[1 if adds else 2 if "optimization" in route.path else 0].call(http, route)
            accepted = answer.is_success or (route.path in REFUSED and answer.status_code in (404, 409, 422))
            assert accepted, (str(route), answer.status_code, answer.text[:800])
    return set().union(*(way.filled for way in ways))


def export_and_import(client: ReflexioClient) -> None:
    """What was exported is imported again while the user is there."""
    lines = list(client.export_organisation())
    assert any(CANARY in str(line).lower() for line in lines)
    client.import_organisation(lines)


def pass_through(server: FaultyServer) -> None:
    """A conversation with a model behind the server, which learns from it."""
    messages = [{"role": "user", "content": f"My name is Zqxpassed. {text('passed')}"}]
    metadata = {"session_id": "zqxpassed", "agent_version": "zqxpassed"}
    body = {"model": "scripted", "user": USER, "messages": messages, "metadata": metadata}
    httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=60).raise_for_status()


def test_nothing_is_left_of_anything(server: FaultyServer, tmp_path: Path) -> None:
    folder = server.folder
    with ReflexioClient(url_endpoint=server.url, timeout=120) as client:
        fill(client)
        optimise(client)
        filled = fill_every_route(server, client)
        assert len(filled) > 60, sorted(filled)
        client.update_config({"redaction": ["email", "phone", "card", "key"]})
        client.publish_interaction(USER, [{"content": f"{text('mail')} zqx@example.com"}], wait_for_response=True)
        pass_through(server)
        eventually(lambda: "zqxpassed" in {each.session_id for each in client.get_requests(user_id=USER).sessions})
        export_and_import(client)
        client.publish_interaction(USER, [turn(11)], session_id="zqxlast", force_extraction=True)
        before = set(rows_with_canary(folder))
        assert before >= {
            *("requests", "interactions", "learnings", "users", "windows", "receipts", "vectors", "lineage"),
            *("operations", "optimisation_evaluations", "pools"),
        }
        assert files_with_canary(folder)

        done = client.clear_user_data(USER)
        eventually(lambda: not rows_with_canary(folder))
        eventually(lambda: not files_with_canary(folder))
        assert is_verified(folder, done, tmp_path)[0] == 0
        assert client.get_interactions(OTHERS[0]).interactions

    server.end()
    assert files_with_canary(folder) == []
    server.start(keeps_deleted=True)
    assert (rows_with_canary(folder), files_with_canary(folder)) == ([], [])
    server.end(15)
    assert files_with_canary(folder) == []
    assert broken_findings(folder) == []


def test_every_route_that_is_left_out_exists() -> None:
    assert set(NOT_ABOUT_A_USER) | REFUSED <= {route.path for route in ROUTES}
