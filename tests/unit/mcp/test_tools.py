"""The tools as a model sees them, and what they make of arguments. Nothing is called here."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from reflexio.client.aio import AsyncReflexioClient
from reflexio.errors import InvalidRequest
from reflexio.mcp.access import MemoryAccess
from reflexio.mcp.resources import read, resources_for
from reflexio.mcp.session import ALL_TOOLS
from reflexio.mcp.tool import ToolDefinition

UNBOUND = MemoryAccess(AsyncReflexioClient(url_endpoint="http://127.0.0.1:9"))
BOUND = MemoryAccess(UNBOUND.client, user_id="ann/ß")
TOOLS = pytest.mark.parametrize("tool", ALL_TOOLS.values(), ids=lambda tool: tool.name)


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for part in schema.values():
            yield from parts(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from parts(part)


@TOOLS
def test_a_schema_stands_alone_and_says_what_every_argument_is_for(tool: ToolDefinition) -> None:
    schema = tool.schema(UNBOUND)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert not any("$ref" in part or "$defs" in part or isinstance(part.get("title"), str) for part in parts(schema))
    for name, argument in schema["properties"].items():
        assert argument.get("description") or name == "limit", name
    assert len(tool.description) > 60


@TOOLS
def test_only_a_session_without_a_user_is_asked_for_one(tool: ToolDefinition) -> None:
    assert ("user_id" in tool.schema(UNBOUND)["properties"]) == (tool.user != "none")
    assert ("user_id" in tool.schema(UNBOUND)["required"]) == (tool.user == "required")
    assert "user_id" not in tool.schema(BOUND)["properties"]


@pytest.mark.parametrize(
    ("name", "arguments", "fault"),
    [
        ("search", {"query": ""}, "query"),
        ("search", {"query": "tea", "user": "ann"}, "user"),
        ("get_context", {"message": 7}, "message"),
        ("publish", {"user_id": "ann", "messages": []}, "messages"),
        ("publish", {"user_id": "ann", "messages": [{"role": "system", "content": "x"}]}, "messages.0.role"),
        ("publish", {"messages": [{"role": "user", "content": "x"}]}, "user_id"),
        ("remember", {"user_id": ["ann"], "text": "Is vegan"}, "user_id"),
        ("remember", {"user_id": "  ", "text": "Is vegan"}, "user_id"),
        ("remember", {"user_id": "ann", "text": "Is vegan", "kind": "secret"}, "kind"),
        ("review_show", {"agent_playbook_id": 0}, "agent_playbook_id"),
        ("review_show", {"agent_playbook_id": 2**63}, "agent_playbook_id"),
        ("review_approve", {"agent_playbook_ids": []}, "agent_playbook_ids"),
        ("review_edit", {}, "agent_playbook_id"),
    ],
)
def test_a_wrong_argument_is_named(name: str, arguments: dict[str, Any], fault: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^{fault}: "):
        asyncio.run(ALL_TOOLS[name].call(UNBOUND, arguments))


def test_a_bound_session_refuses_other_users() -> None:
    with pytest.raises(InvalidRequest, match="bound to the user 'ann/ß'"):
        asyncio.run(ALL_TOOLS["search"].call(BOUND, {"user_id": "eve", "query": "tea"}))
    with pytest.raises(InvalidRequest, match="bound to the user"):
        asyncio.run(read(BOUND, "reflexio://users/eve/profile"))
    assert BOUND.user("ann/ß") == BOUND.user("") == "ann/ß"


def test_the_uri_of_a_bound_resource_names_the_user_in_one_part() -> None:
    assert [resource.uri for resource in resources_for(BOUND)] == [
        "reflexio://users/ann%2F%C3%9F/profile",
        "reflexio://users/ann%2F%C3%9F/playbooks",
        "reflexio://playbooks",
    ]
    assert [resource.is_template for resource in resources_for(UNBOUND)] == [True, True, False]
