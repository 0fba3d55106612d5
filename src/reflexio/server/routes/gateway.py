"""The pass-through to a model server, at `/v1`: which key goes where, and which paths pass."""

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from reflexio.errors import InvalidRequest, NotFound, UpstreamKeyNeeded
from reflexio.gateway.headers import REFLEXIO_KEY
from reflexio.gateway.prompt import NamedConversation, Protocol
from reflexio.gateway.upstream import Upstream
from reflexio.models.access import KeyScope
from reflexio.server.authentication import Authenticator, bearer, presented_key
from reflexio.server.body_limits import check_values
from reflexio.server.caller_headers import SESSION_HEADER, USER_HEADER, VERSION_HEADER, read_name
from reflexio.server.direct import RawRoute, Router
from reflexio.server.routes import get_reflexio, get_store
from reflexio.server.scopes import get_caller, needs
from reflexio.settings import Settings

if TYPE_CHECKING:
    from reflexio.gateway.relay import Relay

router = Router(tag="gateway")

PREFIX = b"/v1/"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
SAFE_PATH = re.compile(rb"[\w.~!$&'()*+,;=:@%-]+(?:/[\w.~!$&'()*+,;=:@%-]+)*/?")
ENCODED_TWICE = re.compile(rb"%(?:25|5c|00)", re.IGNORECASE)
SINGLE_CALLS = re.compile(
    rb"POST (?:chat/completions|responses|completions|embeddings|moderations"
    rb"|audio/(?:speech|transcriptions|translations)|images/(?:generations|edits|variations))"
    rb"|GET models(?:/[\w.:@/%-]+)?"
)
"""What the operator's key is lent for: calls that leave nothing behind that another organisation could list."""
ANY_BODY: dict[str, Any] = {
    "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
    "responses": {"200": {"description": "The answer of the model server, unchanged.", "content": {"*/*": {}}}},
}


REST_OF_PATH: dict[str, Any] = {
    "parameters": [{"name": "path", "in": "path", "required": True, "schema": {"type": "string"}}],
    "responses": ANY_BODY["responses"],
}


def open_gateway(settings: Settings) -> Upstream | None:
    """The model server of the settings; None without one."""
    return Upstream(settings.gateway_url, settings.gateway_timeout) if settings.gateway_url else None


class RelayResponse(Response):
    """The answer of the model server."""

    def __init__(self, relay: "Relay") -> None:
        super().__init__()
        self._relay = relay

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._relay(scope, receive, send)


async def chat_completions(request: Request) -> Response:
    """OpenAI's chat completions, passed through to the server's model server.

    What was learned is put in front of the user's last message, and the exchange is published. Streams too.
    """
    return await _pass(request, Protocol.CHAT)


async def responses(request: Request) -> Response:
    """OpenAI's responses, passed through in the same way."""
    return await _pass(request, Protocol.RESPONSES)


async def other(request: Request) -> Response:
    """Any other path of the model server, passed through unchanged, such as `/v1/models`."""
    return await _pass(request, None)


async def _pass(request: Request, protocol: Protocol | None) -> Response:
    upstream: Upstream | None = request.app.state.gateway
    if upstream is None:
        raise NotFound("Its operator can name one in REFLEXIO_GATEWAY_URL.", what="model server behind", id="/v1")
    from reflexio.gateway.relay import GatewayCall, Relay

    path = _path(request)
    authorization = await _authorization(request, path)
    try:
        body = await request.body()
    except ClientDisconnect:
        raise InvalidRequest("The caller went away before the body was complete.") from None
    call = GatewayCall(
        method=request.method,
        path=path,
        query=_query(request),
        headers=list(request.scope["headers"]),
        body=body,
        authorization=authorization,
        reflexio_key=await _own_key(request),
        store=get_store(request),
        named=_named(request),
        may_read=KeyScope.READ in get_caller(request).scopes,
        protocol=protocol if _is_readable(request, body) else None,
    )
    return RelayResponse(Relay(get_reflexio(request), upstream, call))


def _path(request: Request) -> bytes:
    """The path behind `/v1/`. It can only lead downwards from the address that the operator chose."""
    raw = bytes(request.scope.get("raw_path") or request.scope["path"].encode()).partition(b"?")[0]
    path = raw.removeprefix(PREFIX)
    is_safe = raw.startswith(PREFIX) and SAFE_PATH.fullmatch(path) and not ENCODED_TWICE.search(path)
    if not is_safe or not {b".", b".."}.isdisjoint(unquote_to_bytes(path).split(b"/")):
        raise NotFound(what="path", id=request.scope["path"][:200])
    return path


def _query(request: Request) -> bytes:
    query: bytes = request.scope["query_string"]
    if REFLEXIO_KEY.search(query):
        raise InvalidRequest("A key of Reflexio belongs into a header.")
    if not query.isascii():
        raise InvalidRequest("The query is not in ASCII; write other characters percent-encoded.")
    return query


async def _authorization(request: Request, path: bytes) -> str:
    """The `Authorization` for the model server: the caller's own key of a model, or else the operator's.

    The caller's counts as one when the Reflexio key is in its own header, or when the server has no keys at all and
    the operator gave none. A key of Reflexio never counts as one.
    """
    given = request.headers.get("authorization", "").strip()
    settings = get_reflexio(request).settings
    has_own_header = bool(presented_key(request.headers)) and presented_key(request.headers) != bearer(request.headers)
    if given and (has_own_header or not settings.gateway_key) and not await _is_ours(request, bearer(request.headers)):
        return given
    if not settings.gateway_key:
        return ""
    if not SINGLE_CALLS.fullmatch(request.method.encode() + b" " + path):
        raise UpstreamKeyNeeded(path=request.scope["path"][:200], scope="")
    return f"Bearer {settings.gateway_key}"


async def _is_ours(request: Request, token: str) -> bool:
    authenticator: Authenticator = request.app.state.authenticator
    return bool(token) and await authenticator.is_reflexio_key(token)


async def _own_key(request: Request) -> str:
    """The caller's key of Reflexio, when it showed one. A server without keys takes any word for one."""
    token = presented_key(request.headers)
    return token if await _is_ours(request, token) else ""


def _named(request: Request) -> NamedConversation:
    """What the headers name. A name that cannot be read is none: the call goes on."""

    def name(header: str) -> str:
        try:
            return read_name(request, header)
        except InvalidRequest:
            return ""

    return NamedConversation(name(USER_HEADER), name(SESSION_HEADER), name(VERSION_HEADER))


def _is_readable(request: Request, body: bytes) -> bool:
    """Whether the body may be read. A compressed one is not unpacked, and masses of small values would take long."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json" or request.headers.get("content-encoding", "identity") != "identity":
        return False
    try:
        check_values(body)
    except HTTPException:
        return False
    return True


def _add_routes() -> None:
    shared: dict[str, Any] = {"response_model": None, "route_class_override": RawRoute}
    scope = needs(KeyScope.PUBLISH)
    for protocol, endpoint in ((Protocol.CHAT, chat_completions), (Protocol.RESPONSES, responses)):
        extra = {**scope, **ANY_BODY}
        router.add_api_route(f"/v1/{protocol}", endpoint, methods=["POST"], openapi_extra=extra, **shared)
    for method in METHODS:
        # Starlette takes the rest of the path; OpenAPI documents it as one parameter.
        router.add_api_route(
            "/v1/{path:path}",
            other,
            methods=[method],
            openapi_extra={**scope, **REST_OF_PATH},
            operation_id=f"pass_through_{method.lower()}",
            **shared,
        )


_add_routes()
