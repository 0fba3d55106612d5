"""The SDK's server around the tools, resources and prompts. It decides which of them a key sees."""

import logging
from collections.abc import Awaitable
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

import reflexio
from reflexio.errors import NotPermitted, ReflexioError
from reflexio.mcp.access import MemoryAccess
from reflexio.mcp.prompts import PROMPTS, PromptDefinition
from reflexio.mcp.resources import ResourceDefinition, read, resources_for
from reflexio.mcp.review_tools import REVIEW_TOOLS
from reflexio.mcp.tool import ToolDefinition
from reflexio.mcp.tools import TOOLS
from reflexio.models.access import KeyScope

log = logging.getLogger("reflexio.mcp")
R = TypeVar("R")
Context = ServerRequestContext[Any, Any]

ALL_TOOLS = {tool.name: tool for tool in (*TOOLS, *REVIEW_TOOLS)}
ALL_PROMPTS = {prompt.name: prompt for prompt in PROMPTS}
MARKDOWN = "text/markdown"
INSTRUCTIONS = (
    "Reflexio remembers what users taught. Before you answer a user's message, call get_context with it and follow the "
    "text that comes back. After the answer, call publish with the new messages: Reflexio learns from them. Call "
    "remember when the user asks you to remember something."
)
MISTAKE = "The server made a mistake. It is in the server's log."


def create_server(access: MemoryAccess) -> Server[Any]:
    """The MCP server of one session."""
    session = _Session(access)
    return Server(
        "reflexio",
        title="Reflexio",
        version=reflexio.__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=session.list_tools,
        on_call_tool=session.call_tool,
        on_list_resources=session.list_resources,
        on_list_resource_templates=session.list_templates,
        on_read_resource=session.read_resource,
        on_list_prompts=session.list_prompts,
        on_get_prompt=session.get_prompt,
        get_tool_input_schema=session.schema_of,  # otherwise the SDK lists all tools for each call
    )


class _Session:
    def __init__(self, access: MemoryAccess) -> None:
        self._access = access

    async def list_tools(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        scopes = await _outermost(self._access.scopes())
        return types.ListToolsResult(
            tools=[_tool(tool, self._access) for tool in ALL_TOOLS.values() if tool.scope in scopes]
        )

    def schema_of(self, name: str) -> dict[str, Any] | None:
        return ALL_TOOLS[name].schema(self._access) if name in ALL_TOOLS else None

    async def call_tool(self, _: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """The tool's answer. Its failure is a result that the model can read, and act upon."""
        tool = ALL_TOOLS.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name[:100]!r}.")
        try:
            await self._require(tool.scope)
            answer = await tool.call(self._access, params.arguments or {})
        except ReflexioError as error:
            return _failed(str(error))
        except Exception:
            log.exception("the tool %s failed", tool.name)
            return _failed(MISTAKE)
        return types.CallToolResult(content=[types.TextContent(text=answer.text)], structured_content=answer.content)

    async def list_resources(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        found = [resource for resource in await self._resources() if not resource.is_template]
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=resource.uri,
                    name=resource.name,
                    title=resource.title,
                    description=resource.description,
                    mime_type=MARKDOWN,
                )
                for resource in found
            ]
        )

    async def list_templates(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        found = [resource for resource in await self._resources() if resource.is_template]
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=resource.uri,
                    name=resource.name,
                    title=resource.title,
                    description=resource.description,
                    mime_type=MARKDOWN,
                )
                for resource in found
            ]
        )

    async def read_resource(self, _: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        await _outermost(self._require(KeyScope.READ))
        text = await _outermost(read(self._access, uri))
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=MARKDOWN, text=text)])

    async def list_prompts(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        scopes = await _outermost(self._access.scopes())
        return types.ListPromptsResult(
            prompts=[_prompt(prompt, self._access) for prompt in PROMPTS if prompt.scope in scopes]
        )

    async def get_prompt(self, _: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        prompt = ALL_PROMPTS.get(params.name)
        if prompt is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no prompt {params.name[:100]!r}.")
        await _outermost(self._require(prompt.scope))
        text = await _outermost(prompt.text(self._access, params.arguments or {}))
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=prompt.description, messages=[message])

    async def _resources(self) -> tuple[ResourceDefinition, ...]:
        scopes = await _outermost(self._access.scopes())
        return resources_for(self._access) if KeyScope.READ in scopes else ()

    async def _require(self, scope: KeyScope) -> None:
        """Refuses what was not listed. The routes behind the client check their scopes all the same."""
        if scope not in await self._access.scopes():
            raise NotPermitted(scope=scope.value)


async def _outermost(call: Awaitable[R]) -> R:
    """What a call returns. Its failure becomes an error of the protocol; details of our mistakes stay in the log."""
    try:
        return await call
    except ReflexioError as error:
        raise MCPError(types.INVALID_PARAMS, str(error)) from None
    except Exception:
        log.exception("a request failed")
        raise MCPError(types.INTERNAL_ERROR, MISTAKE) from None


def _failed(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)


def _tool(tool: ToolDefinition, access: MemoryAccess) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.schema(access),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.is_read_only,
            destructive_hint=tool.is_destructive,
            idempotent_hint=tool.is_read_only,
            open_world_hint=False,
        ),
    )


def _prompt(prompt: PromptDefinition, access: MemoryAccess) -> types.Prompt:
    return types.Prompt(
        name=prompt.name,
        title=prompt.title,
        description=prompt.description,
        arguments=[
            types.PromptArgument(name=name, description=description, required=is_required)
            for name, description, is_required in prompt.arguments_for(access)
        ],
    )
