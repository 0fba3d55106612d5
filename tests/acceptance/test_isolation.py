"""Generated from the OpenAPI document, so that no new route can be forgotten: isolation, authentication, scopes.

Every route is called with the real ids of another organisation in every field that takes an id, also in nested ones.
A field that looks like an id and has no value here fails the test: give it a real one in `names_of`.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from reflexio.models.access import KeyScope
from reflexio.models.search import HitPosition
from reflexio.organisations import keys
from reflexio.ports.clock import SystemClock
from reflexio.ports.storage import Database
from reflexio.server.app import create_app
from reflexio.settings import Settings
from tests.builders import body, name, new_key, on_database, problem
from tests.conftest import Org, Running

SECRET = "zanzibar"
"""Stands in every text of the other organisation and in no request of ours: where it appears, something leaked."""
LOOKS_LIKE_AN_ID = re.compile(r"(^|.*_)(ids?|cursor|Key)$|^reviewer$|.*-Key$")
NO_IDS_OF_ROWS = {"retrieval_experiment_id"}
"""Names that the caller chooses freely and that lead to no row."""
ANY = "any"
ONE_OF = {"agent_playbook_id", "user_playbook_id"}
STATUSES = {200, 202, 404, 409}


@dataclass(frozen=True)
class Route:
    """One operation of the document."""

    method: str
    path: str
    operation: dict[str, Any]

    @property
    def scope(self) -> str:
        """The scope that the document says; empty for an open route, ANY where the key may have any scope."""
        security = self.operation["security"]
        return str((security[0]["key"] or [ANY])[0]) if security else ""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


DOCUMENT = create_app(Settings()).openapi()
ROUTES = [
    Route(method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]
CLOSED = [route for route in ROUTES if route.scope]


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without references and without the alternative null."""
    if "$ref" in schema:
        return resolved(DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    alternatives = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    return resolved(alternatives[0]) if alternatives else schema


class Filler:
    """Builds requests that carry `names` in the fields that take them: all together, and each alone."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names

    def requests(self, route: Route) -> Iterator[dict[str, Any]]:
        """Arguments for httpx. The first request has every field."""
        content = route.operation.get("requestBody", {}).get("content", {})
        schema = resolved(content["application/json"]["schema"]) if content else {}
        parameters: dict[str, dict[str, Any]] = {"query": {}, "header": {}, "path": {}}
        required = set(schema.get("required", ()))
        for parameter in route.operation.get("parameters", ()):
            field, must = parameter["name"], parameter.get("required", False)
            if (value := self.value(field, resolved(parameter["schema"]), must)) is not None:
                parameters[parameter["in"]][field] = str(value)
                required |= {field} if must else set()
        sent = {"method": route.method, "url": route.path.format(**parameters["path"])}
        for fields in self._choices(route, {**parameters["query"], **self.object(schema)}, required):
            query = {field: value for field, value in parameters["query"].items() if field in fields}
            document = {field: value for field, value in self.object(schema).items() if field in fields}
            more = {"json": document} if content else {}
            yield {**sent, "params": query, "headers": parameters["header"], **more}

    @staticmethod
    def _choices(route: Route, values: dict[str, Any], required: set[str]) -> Iterator[set[str]]:
        """Fields to send together: all conditions together may find nothing where one alone would."""
        if route.path.endswith("run_playbook_optimization"):
            yield from ({field} for field in sorted(ONE_OF))
            return
        optional = [field for field in values if field not in required]
        for chosen in (optional, [], *([field] for field in optional)):
            yield required | set(chosen)

    def object(self, schema: dict[str, Any]) -> dict[str, Any]:
        required = schema.get("required", ())
        values = {
            field: self.value(field, resolved(each), field in required)
            for field, each in schema.get("properties", {}).items()
        }
        return {field: value for field, value in values.items() if value is not None}

    def value(self, field: str, schema: dict[str, Any], required: bool) -> Any:
        """The value of a field: a name of the other organisation, or what is required, or None."""
        is_list = schema.get("type") == "array"
        if field in self._names:
            known = self._names[field]
            # A number where rows are numbered, a text where the same name is one.
            one = str(known) if schema.get("type") == "string" and isinstance(known, int) else known
            return [one] if is_list and not isinstance(one, list) else one
        if LOOKS_LIKE_AN_ID.fullmatch(field) and field not in NO_IDS_OF_ROWS:
            pytest.fail(f"{field} looks like an id: give the test a real one of another organisation")
        items = resolved(schema.get("items", {})) if is_list else {}
        if "properties" in items:
            return [self.object(items)]
        if "properties" in schema:
            return self.object(schema) if required else None
        return self._example(schema) if required else None

    @staticmethod
    def _example(schema: dict[str, Any]) -> Any:
        if "enum" in schema:
            return schema["enum"][0]
        examples = {"string": "parcel", "integer": 1, "number": 0.5, "boolean": True, "array": [], "object": {}}
        return schema.get("const", examples[schema.get("type", "object")])


def names_of(org: Org) -> dict[str, Any]:
    """Rows of every kind in an organisation, and all the names by which another could reach for them."""
    key, request, user = name("key"), name("request"), name("user")
    with org.http() as http:
        turns = [{"role": role, "content": f"The {SECRET} parcel {role}"} for role in ("User", "Agent")]
        for number in range(3):
            published = body(
                user_id=user,
                session_id="s",
                source="chat",
                request_id=f"{request}-{number}",
                interaction_data_list=turns,
            )
            headers = {"Idempotency-Key": f"{key}-{number}"}
            http.post("/api/publish_interaction", json=published, headers=headers).raise_for_status()
        page = http.get("/api/get_all_interactions", params={"limit": 2}).json()
        interaction = page["interactions"][0]["interaction_id"]
        http.post("/api/set_config", json={"agent_context_prompt": SECRET}).raise_for_status()
    with org.client() as client:
        profile = client.add_user_profile([{"user_id": user, "content": f"Trusts the {SECRET} parcel"}]).ids[0]
        mine = {"user_id": user, "content": f"Ask the {SECRET} parcel", "source_interaction_ids": [interaction]}
        of_user = int(client.add_user_playbook([mine]).ids[0])
        window = {"user_playbook_id": of_user, "source_interaction_ids": [interaction]}
        approved = {"content": f"Leave the {SECRET} parcel", "playbook_status": "approved", "source_windows": [window]}
        of_agent = int(client.add_agent_playbooks([approved]).ids[0])
        client.review_agent_playbooks([of_agent], playbook_status="rejected", reviewer=SECRET)
        job = client.run_playbook_optimization(agent_playbook_id=of_agent).job_id
        operation = client.run_playbook_aggregation("v1", wait_for_response=True).operation_id
    assert job
    assert operation
    return {
        "user_id": user,
        "session_id": "s",
        "source": "chat",
        "Idempotency-Key": f"{key}-0",
        "cursor": page["next_cursor"],
        "request_id": f"{request}-0",
        "request_ids": [f"{request}-{number}" for number in range(3)],
        "generated_from_request_id": f"{request}-0",
        "interaction_id": interaction,
        "source_interaction_ids": [interaction],
        "profile_id": profile,
        "profile_ids": [profile],
        "user_playbook_id": of_user,
        "user_playbook_ids": [of_user],
        "agent_playbook_id": of_agent,
        "agent_playbook_ids": [of_agent],
        "learning_id": of_agent,
        "real_id": of_agent,
        "merged_into": of_agent,
        "superseded_by": of_agent,
        "job_id": job,
        "operation_id": operation,
        "id": str(of_agent),
        "kind": "agent_playbook",
        "query": "parcel",
        "search_query": "parcel",
        "content": "changed by another parcel",
        "playbook_status": "pending",
        "status": None,
        "reviewer": "another",
        "service_name": "profile_generation",
        "outcome": "hurt",
    }


def state_of(org: Org, names: dict[str, Any]) -> dict[str, Any]:
    """All that an organisation can see of itself."""
    user, everything = {"user_id": names["user_id"]}, ("pending", "archived", "superseded", "merged", "current")
    with org.http() as http:

        def lineage(kind: str, row: Any) -> Any:
            return http.post("/api/get_learning_provenance", json={"kind": kind, "id": str(row)}).json()

        return {
            "turns": http.get("/api/get_all_interactions", params={"limit": 1000}).json()["interactions"],
            "requests": http.post("/api/get_requests", json={"top_k": 1000}).json()["sessions"],
            "config": http.get("/api/get_config").json(),
            "profiles": http.post("/api/get_profiles", json={**user, "status_filter": everything}).json(),
            "user_playbooks": http.post("/api/get_user_playbooks", json={"status_filter": everything}).json(),
            "agent_playbooks": http.post("/api/get_agent_playbooks", json={"status_filter": everything}).json(),
            "jobs": http.get("/api/get_playbook_optimizations").json(),
            "usage": http.get("/api/usage").json(),
            "lineage": [
                lineage("agent_playbook", names["agent_playbook_id"]),
                lineage("user_playbook", names["user_playbook_id"]),
                lineage("profile", names["profile_id"]),
            ],
        }


def test_no_route_reaches_the_rows_of_another(make_org: Callable[[], Org]) -> None:
    ours, theirs = make_org(), make_org()
    names = names_of(theirs)
    before = state_of(theirs, names)
    assert str(before).count(SECRET) > 10
    filler, planted = Filler(names), list[tuple[str, str]]()
    # A cursor of a search counts hits; it leads to no row.
    searching = Filler({**names, "cursor": HitPosition(1).cursor()})
    unique = [names[each] for each in ("user_id", "request_id", "profile_id", "operation_id")]
    with ours.http() as http:

        def call(route: Route) -> None:
            of_route = searching if route.path.startswith("/api/search") else filler
            for number, sent in enumerate(of_route.requests(route)):
                answer = http.request(**sent)
                # A part of the fields may not make a request; all of them do.
                accepted = STATUSES | {422} if number else STATUSES
                assert answer.status_code in accepted, (str(route), sent, answer.text)
                assert SECRET not in answer.text, str(route)
                if answer.is_success and not planted and route.scope != "publish":
                    # Nothing of ours has these names yet: a row that shows one is theirs.
                    assert not any(each in answer.text for each in unique), (str(route), sent)
                if kind := re.fullmatch(r"/api/add_(user_profile|user_playbook|agent_playbook)", route.path):
                    rows = answer.json().get("ids", ())
                    planted.extend((kind[1].replace("user_profile", "profile"), str(row)) for row in rows)

        # Without a row of ours, then with rows of ours that name theirs in every reference.
        for scopes in (
            ("", ANY, "read", "review", "admin"),
            ("publish",),
            ("read",),
            ("review",),
            ("read",),
            ("admin",),
        ):
            for route in ROUTES:
                if route.scope in scopes:
                    call(route)
            for kind, row in planted:
                answer = http.post("/api/get_learning_provenance", json={"kind": kind, "id": row})
                assert SECRET not in answer.text, kind
        assert {kind for kind, _ in planted} == {"profile", "user_playbook", "agent_playbook"}
    assert state_of(theirs, names) == before


def revoked_key(org: Org, server: Running) -> str:
    async def make(database: Database) -> str:
        created = await keys.create(database, SystemClock(), org.id)
        await keys.revoke(database, SystemClock(), created.key.id)
        return created.token

    return on_database(server.folder, make)


def test_every_route_but_the_open_ones_needs_a_valid_key(server: Running, org: Org) -> None:
    assert len(CLOSED) > 50
    tokens = ("", "Bearer rfx_wrong", f"Bearer {revoked_key(org, server)}", f"Basic {org.token}", "Bearer")
    with httpx.Client(base_url=server.url) as http:
        for route in ROUTES:
            for token in tokens:
                headers = {"Authorization": token} if token else {}
                answer = http.request(route.method, route.path, headers=headers)
                if route.scope:
                    problem(answer, 401)
                else:
                    assert answer.is_success, str(route)


@pytest.mark.parametrize("scope", KeyScope)
def test_every_route_refuses_a_key_without_its_scope(server: Running, org: Org, scope: KeyScope) -> None:
    without = new_key(server.folder, org.id, scopes=frozenset(KeyScope) - {scope})
    only = new_key(server.folder, org.id, scopes=frozenset({scope}))
    with httpx.Client(base_url=server.url) as http:
        for route in CLOSED:
            if route.scope == ANY:
                continue  # every key has some scope
            if route.scope != scope:
                token, refusal = only, route.scope
            else:
                token, refusal = without, scope
                allowed = http.request(route.method, route.path, headers={"Authorization": f"Bearer {only}"})
                assert allowed.status_code not in (401, 403), (str(route), allowed.text)
            answer = http.request(route.method, route.path, headers={"Authorization": f"Bearer {token}"})
            assert f"'{refusal}'" in problem(answer, 403), str(route)


def test_a_field_that_looks_like_an_id_cannot_be_forgotten() -> None:
    route = Route(
        "GET", "/api/new", {"parameters": [{"name": "vault_id", "in": "query", "schema": {"type": "string"}}]}
    )
    with pytest.raises(pytest.fail.Exception, match="vault_id looks like an id"):
        list(Filler({}).requests(route))
