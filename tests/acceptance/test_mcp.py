"""MCP on a real server, by the SDK's own client: over streamable HTTP in both of its generations, and over stdio."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx
import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from reflexio.models.access import KeyScope
from tests.acceptance.test_isolation import SECRET, Filler, names_of, state_of
from tests.builders import eventually, name, new_key, problem
from tests.conftest import Org, Running, StartServer

T = TypeVar("T")
Use = Callable[[Client], Awaitable[T]]
Run = Callable[..., Any]
READING = {"get_context", "search", "review_list", "review_show"}
PUBLISHING = {"publish", "remember"}
REVIEWING = {"review_approve", "review_reject", "review_edit", "review_undo"}
TALK = [{"role": "user", "content": "Where is my parcel?"}, {"role": "assistant", "content": "With your neighbour."}]


def over_http(url: str, use: Use[T], *, mode: str = "auto", **headers: str) -> T:
    async def run() -> T:
        async with httpx2.AsyncClient(headers=headers, trust_env=False) as http:
            transport = streamable_http_client(f"{url}/mcp", http_client=http)
            async with Client(transport, mode=mode) as client:
                return await use(client)

    return asyncio.run(run())


def over_stdio(url: str, use: Use[T], *options: str, key: str = "") -> T:
    command = ["-m", "reflexio", "mcp", "--url", url, *options]
    server = StdioServerParameters(command=sys.executable, args=command, env={"REFLEXIO_API_KEY": key})

    async def run() -> T:
        async with Client(server) as client:
            return await use(client)

    return asyncio.run(run())


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(params=["2026", "2025", "stdio"])
def run(request: pytest.FixtureRequest, org: Org) -> Run:
    """Runs something with a client of each kind, with the key of the organisation."""
    if request.param == "stdio":
        return lambda use: over_stdio(org.url, use, key=org.token)
    mode = {"2026": "auto", "2025": "legacy"}[request.param]
    return lambda use: over_http(org.url, use, mode=mode, **bearer(org.token))


def text(result: Any) -> str:
    """The one text of a tool's answer, or of a resource."""
    (part,) = result.contents if hasattr(result, "contents") else result.content
    return str(part.text)


def test_what_is_said_through_a_tool_is_remembered_and_comes_back(run: Run, org: Org) -> None:
    user = name()

    async def use(client: Client) -> None:
        fact = await client.call_tool("remember", {"user_id": user, "text": "Is vegan", "always": True})
        assert not fact.is_error, text(fact)
        again = await client.call_tool("remember", {"user_id": user, "text": "Is vegan"})
        assert again.structured_content == fact.structured_content
        rule = {"user_id": user, "text": "Name the price first", "kind": "rule", "when": "an offer is made"}
        assert not (await client.call_tool("remember", rule)).is_error
        context = await client.call_tool("get_context", {"user_id": user, "message": "Recommend me a dish"})
        assert "Is vegan" in text(context)
        assert context.structured_content
        assert {"kind": "profile", "id": fact.structured_content["id"]} in context.structured_content["items"]
        found = await client.call_tool("search", {"user_id": user, "query": "the price of an offer"})
        assert "When: an offer is made. Name the price first" in text(found)
        profile = await client.read_resource(f"reflexio://users/{user}/profile")
        assert text(profile) == "- Is vegan"
        playbooks = await client.read_resource(f"reflexio://users/{user}/playbooks")
        assert "Name the price first" in text(playbooks)
        prompt = await client.get_prompt("answer_with_memory", {"user_id": user, "message": "Any dish?"})
        assert "Is vegan" in str(prompt.messages[0].content)

    run(use)
    with org.client() as reader:
        assert [profile.source for profile in reader.get_profiles(user).user_profiles] == ["mcp"]


def test_a_conversation_is_published_with_what_was_in_the_prompt(run: Run, org: Org) -> None:
    user = name()
    used = [{"kind": "agent_playbook", "id": "7"}]

    async def use(client: Client) -> str:
        tool = {"tool_name": "track", "tool_data": {"input": {"parcel": 7}}, "status": "ok"}
        talk = [TALK[0], {**TALK[1], "tools_used": [tool]}]
        first = await client.call_tool("publish", {"user_id": user, "messages": talk, "learnings_used": used})
        assert not first.is_error, text(first)
        session = str(first.structured_content["session_id"])
        assert session in text(first)
        more = {"user_id": user, "messages": TALK, "session_id": session, "session_finished": True}
        assert not (await client.call_tool("publish", more)).is_error
        return session

    session = run(use)
    with org.client() as reader:
        (stored,) = reader.get_requests(user_id=user).sessions
        assert stored.session_id == session
        assert [entry.request.session_finished for entry in stored.requests] == [True, False]
        question, answer = stored.requests[1].interactions
        assert (question.role, answer.role) == ("User", "Agent")
        assert answer.tools_used[0].tool_name == "track"
        assert [(row.kind, row.learning_id) for row in answer.retrieved_learnings] == [("agent_playbook", "7")]


def test_a_playbook_is_reviewed_from_list_to_undo(run: Run, org: Org) -> None:
    with org.client() as admin:
        new = [{"content": "Ask for the number", "trigger": "a parcel is late"}, {"content": "Apologise twice"}]
        ask, apologise = map(int, admin.add_agent_playbooks(new).ids)

    async def use(client: Client) -> None:
        async def call(tool: str, **arguments: Any) -> str:
            done = await client.call_tool(tool, arguments)
            assert not done.is_error, text(done)
            return text(done)

        assert f"[agent_playbook {ask}] When: a parcel is late. Ask for the number" in await call("review_list")
        assert "added by hand" in await call("review_show", agent_playbook_id=ask)
        edited = await call("review_edit", agent_playbook_id=ask, trigger="a parcel is lost", reason="clearer")
        assert "When: a parcel is lost\nAdvice: Ask for the number" in edited
        assert "pending" in edited
        await call("review_reject", agent_playbook_ids=[apologise], reason="once is enough")
        assert await call("review_approve", agent_playbook_ids=[ask]) == f"Approved: {ask}."
        assert await call("review_list") == "No agent playbook waits for a decision."
        everybody = await client.read_resource("reflexio://playbooks")
        assert "Ask for the number" in text(everybody)
        assert "Apologise" not in text(everybody)
        await call("review_undo", agent_playbook_ids=[apologise])
        assert "Apologise twice" in await call("review_list")
        missing = await client.call_tool("review_show", {"agent_playbook_id": 2**62})
        assert missing.is_error
        assert "There is no agent playbook" in text(missing)

    run(use)


SCOPES = [
    ({KeyScope.READ}, READING, {"answer_with_memory", "what_is_known"}),
    ({KeyScope.PUBLISH}, PUBLISHING, {"save_lesson"}),
    ({KeyScope.REVIEW}, REVIEWING, {"review_playbooks"}),
    ({KeyScope.ADMIN}, set[str](), set[str]()),
    (set(KeyScope), READING | PUBLISHING | REVIEWING, {"save_lesson", "review_playbooks", "answer_with_memory"}),
]
SAMPLES: dict[str, dict[str, Any]] = {
    "get_context": {"message": "hello"},
    "search": {"query": "hello"},
    "publish": {"user_id": "ann", "messages": TALK},
    "remember": {"user_id": "ann", "text": "Is vegan"},
    "review_list": {},
    "review_show": {"agent_playbook_id": 1},
    "review_edit": {"agent_playbook_id": 1, "content": "x"},
    **{f"review_{verb}": {"agent_playbook_ids": [1]} for verb in ("approve", "reject", "undo")},
}


@pytest.mark.parametrize(("scopes", "tools", "prompts"), SCOPES)
def test_what_the_key_may_not_use_is_not_listed_and_refused(
    server: Running, org: Org, scopes: set[KeyScope], tools: set[str], prompts: set[str]
) -> None:
    token = new_key(server.folder, org.id, scopes=frozenset(scopes))

    async def use(client: Client) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == tools
        assert prompts <= {prompt.name for prompt in (await client.list_prompts()).prompts}
        assert bool((await client.list_resources()).resources) == (KeyScope.READ in scopes)
        for tool, arguments in SAMPLES.items():
            answer = await client.call_tool(tool, arguments)
            assert ("lacks the scope" in text(answer)) == (tool not in tools), tool
        if KeyScope.READ not in scopes:
            with pytest.raises(MCPError, match="lacks the scope 'read'"):
                await client.read_resource("reflexio://playbooks")

    over_http(org.url, use, **bearer(token))


def test_a_read_only_key_lists_less_over_stdio_too(server: Running, org: Org) -> None:
    token = new_key(server.folder, org.id, scopes=frozenset({KeyScope.READ}))

    async def use(client: Client) -> set[str]:
        refused = await client.call_tool("publish", SAMPLES["publish"])
        assert refused.is_error
        return {tool.name for tool in (await client.list_tools()).tools}

    assert over_stdio(org.url, use, key=token) == READING


def test_no_tool_and_no_resource_reaches_the_rows_of_another(make_org: Callable[[], Org]) -> None:
    """Generated from the list of tools, like the test of all routes: every argument carries an id of the other."""
    ours, theirs = make_org(), make_org()
    names = {**names_of(theirs), "messages": [{"role": "user", "content": "parcel"}], "reason": "parcel"}
    names |= {"message": "parcel", "text": "parcel", "learnings_used": [{"kind": "agent_playbook", "id": names["id"]}]}
    names |= {"kind": "fact"}
    before = state_of(theirs, names)
    filler = Filler(names)

    def requests(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
        everything = filler.object(schema)
        required = set(schema["required"])
        for fields in (set(everything), required, *(required | {field} for field in everything)):
            yield {field: value for field, value in everything.items() if field in fields}

    async def use(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert len(tools) == 10
        for tool in tools:
            for arguments in requests(tool.input_schema):
                answer = await client.call_tool(tool.name, arguments)
                assert SECRET not in str(answer), (tool.name, arguments)
        templates = (await client.list_resource_templates()).resource_templates
        uris = [template.uri_template.replace("{user_id}", names["user_id"]) for template in templates]
        for uri in (*uris, "reflexio://playbooks"):
            contents = (await client.read_resource(uri)).contents
            assert SECRET not in str(contents), uri

    over_http(ours.url, use, **bearer(ours.token))
    assert state_of(theirs, names) == before


def call(url: str, method: str = "tools/list", *, headers: dict[str, str] | None = None, **params: Any) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return httpx.post(f"{url}/mcp", json=message, headers=headers or {}, timeout=30)


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "//mcp", "/mcp?x=1"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS", "PUT"])
def test_nobody_gets_an_answer_without_a_key(server: Running, method: str, path: str) -> None:
    for headers in ({}, bearer("rfx_wrong"), {"Mcp-Session-Id": "x", "MCP-Protocol-Version": "2026-07-28"}):
        problem(httpx.request(method, server.url + path, headers=headers, json={}), 401)


def test_only_posts_are_answered(org: Org) -> None:
    for method in ("GET", "DELETE"):
        assert httpx.request(method, f"{org.url}/mcp", headers=bearer(org.token)).status_code == 405


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "attacker.example"},
        {"Host": "attacker.example:8081", "Origin": "http://attacker.example:8081"},
        {"Origin": "https://attacker.example"},
        {"Origin": "null"},
        {"X-Forwarded-For": "127.0.0.1"},
    ],
)
def test_a_web_page_that_rebinds_its_name_gets_nothing_from_a_server_without_keys(
    open_server: Running, headers: dict[str, str]
) -> None:
    assert "reflexio keys create" in problem(call(open_server.url, headers=headers), 403)


@pytest.mark.parametrize(
    "origin", ["https://attacker.example", "null", "http://localhost.attacker.example", "http://["]
)
def test_a_foreign_web_page_is_refused_even_with_a_key(org: Org, origin: str) -> None:
    refused = problem(call(org.url, headers={**bearer(org.token), "Origin": origin}), 403)
    assert "REFLEXIO_CORS_ORIGINS" in refused


def test_a_page_of_this_machine_and_one_that_the_operator_named_are_served(start_server: StartServer) -> None:
    server = start_server(REFLEXIO_CORS_ORIGINS="https://desk.example", REFLEXIO_API_KEY="k")
    for origin in ("https://desk.example", "http://localhost:3000"):
        assert call(server.url, headers={**bearer("k"), "Origin": origin}).status_code == 200


def test_the_operators_key_of_the_process_is_not_lent_to_callers(start_server: StartServer, tmp_path: Path) -> None:
    """The client inside the server must not find REFLEXIO_API_KEY in its environment."""
    server = start_server(REFLEXIO_API_KEY="operator")
    weak = new_key(tmp_path, "default", scopes=frozenset({KeyScope.PUBLISH}))
    listed = call(server.url, headers=bearer(weak)).json()["result"]["tools"]
    assert {tool["name"] for tool in listed} == PUBLISHING
    problem(call(server.url), 401)


def test_limits_hold_for_the_tools_too(start_server: StartServer) -> None:
    server = start_server(REFLEXIO_RATE_LIMITS="search=1/minute,mcp=4/minute", REFLEXIO_MAX_BODY_BYTES="2000")
    arguments: dict[str, Any] = {"name": "search", "arguments": {"query": "parcel"}}
    assert not call(server.url, "tools/call", **arguments).json()["result"]["isError"]
    refused = call(server.url, "tools/call", **arguments).json()["result"]
    assert refused["isError"]
    assert "Too many requests" in refused["content"][0]["text"]
    problem(call(server.url, "tools/call", name="search", arguments={"query": "x" * 3000}), 413)
    assert [call(server.url).status_code for _ in range(2)] == [200, 429]


def test_a_session_bound_to_a_user_takes_no_other(org: Org) -> None:
    async def use(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "user_id" not in tools["remember"].input_schema["properties"]
        assert not (await client.call_tool("remember", {"text": "Is vegan"})).is_error
        other = await client.call_tool("get_context", {"user_id": "eve", "message": "hello"})
        assert "bound to the user 'zoë'" in text(other)
        uris = [str(resource.uri) for resource in (await client.list_resources()).resources]
        assert uris[0] == "reflexio://users/zo%C3%AB/profile"
        assert text(await client.read_resource(uris[0])) == "- Is vegan"
        with pytest.raises(MCPError, match="bound to the user"):
            await client.read_resource("reflexio://users/eve/profile")
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        assert [argument.name for argument in prompts["answer_with_memory"].arguments or ()] == ["message"]

    with org.client() as admin:
        number = int(admin.add_agent_playbooks([{"content": "Ask for the number"}]).ids[0])

    async def decide(client: Client) -> None:
        assert not (await client.call_tool("review_approve", {"agent_playbook_ids": [number]})).is_error
        shown = text(await client.call_tool("review_show", {"agent_playbook_id": number}))
        assert "by zoë" in shown, "the key has no owner, so the decision is that of the user of the session"

    over_http(org.url, use, **bearer(org.token), **{"X-Reflexio-User": "zo%C3%AB"})
    over_http(org.url, decide, **bearer(org.token), **{"X-Reflexio-User": "zo%C3%AB"})
    over_stdio(org.url, use, "--user", "zoë", key=org.token)


@pytest.mark.parametrize(
    "arguments",
    [
        {"user_id": "ann", "text": "a\0b"},
        {"user_id": "ann", "text": "\ud800"},
        {"user_id": "x" * 300, "text": "Is vegan"},
        {"user_id": "ann", "messages": [{"role": "user", "content": "\ud800"}]},
        {"user_id": "ann", "messages": [{"role": "user", "content": ""}]},
    ],
)
def test_what_cannot_be_stored_is_refused_in_words(org: Org, arguments: dict[str, Any]) -> None:
    tool = "remember" if "text" in arguments else "publish"
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    answer = httpx.post(
        f"{org.url}/mcp", content=json.dumps(message), headers={**bearer(org.token), "Content-Type": "application/json"}
    )
    assert answer.status_code in (200, 400, 422), answer.text
    if answer.status_code == 200:
        assert answer.json()["result"]["isError"]
    assert "made a mistake" not in answer.text


def test_without_a_server_the_tools_are_listed_and_say_what_to_do() -> None:
    async def use(client: Client) -> None:
        assert len((await client.list_tools()).tools) == 10
        answer = await client.call_tool("search", {"query": "parcel"})
        assert answer.is_error
        assert "start one with `reflexio serve`" in text(answer)

    over_stdio("http://127.0.0.1:9", use)


def test_what_is_published_is_learned(open_server: Running) -> None:
    user = name()

    async def use(client: Client) -> str:
        talk = [{"role": "user", "content": "Please always answer in German from now on."}, TALK[1]]
        arguments = {"user_id": user, "messages": talk, "session_finished": True}
        return str((await client.call_tool("publish", arguments)).structured_content["request_id"])

    over_http(open_server.url, use)

    def knows() -> bool:
        async def ask(client: Client) -> bool:
            answer = await client.call_tool("get_context", {"user_id": user, "message": "Where is it?"})
            return "German" in text(answer)

        return over_http(open_server.url, ask)

    eventually(knows)
