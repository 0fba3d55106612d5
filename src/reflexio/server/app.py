"""The HTTP application around a running Reflexio. The route modules declare who answers each route."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

import reflexio
from reflexio.app import Reflexio, build
from reflexio.errors import InvalidRequest
from reflexio.models.config import Setting
from reflexio.models.wire import RequestModel, ResponseModel
from reflexio.models.wire import build as build_model
from reflexio.server import api_document, problems
from reflexio.server.authentication import Authenticator
from reflexio.server.direct import direct_handlers
from reflexio.server.request_gate import OPEN_PATHS, RateLimiter, RequestGate, route_name
from reflexio.server.routes import (
    aggregation,
    evaluation,
    gateway,
    health,
    interactions,
    learnings,
    mcp,
    operations,
    optimisation,
    organisation,
    search,
    transfer,
)
from reflexio.server.scopes import SCHEME, check_routes
from reflexio.server.visitors import PageGate
from reflexio.settings import RateLimit, Settings

MODEL_BUILD_DELAY = 0.3
"""Seconds after the start in which the server only answers requests, and builds no models ahead of their use."""
EXPOSED_HEADERS = ("Retry-After", "X-Request-ID")
"""Headers that a web page of an allowed origin may read."""
SUMMARY = "The learning layer for AI agents: publish what happened, get back what was learned."
ROUTERS = (
    health.router,
    interactions.router,
    learnings.router,
    operations.router,
    aggregation.router,
    aggregation.review_router,
    optimisation.router,
    search.router,
    organisation.router,
    transfer.router,
    evaluation.router,
    mcp.router,
    gateway.router,
)


class ServerApp(FastAPI):
    """FastAPI behind the request gate. `entry`, the gate, is set when the application starts."""

    entry: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        scope["app"] = self
        await self.entry(scope, receive, send)

    async def by_fastapi(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request by FastAPI, behind the gate."""
        await super().__call__(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document, with the way to send a key: a key is needed as soon as one exists."""
        if not self.openapi_schema:
            with warnings.catch_warnings():
                # FastAPI gives body fields an alias that pydantic does not use. FastAPI ignores the warning when it
                # declares a route; our models are built later, here.
                warnings.simplefilter("ignore", category=UnsupportedFieldAttributeWarning)
                document = super().openapi()
            api_document.complete(document)
            document["components"]["securitySchemes"] = {SCHEME: {"type": "http", "scheme": "bearer"}}
            document["security"] = [{SCHEME: []}, {}]
        return super().openapi()

    def open_gate(self, parts: Reflexio) -> None:
        """Puts the request gate in front of FastAPI."""
        settings = parts.settings
        self.state.reflexio = parts
        self.state.stopping = False
        authenticator = Authenticator(parts.database, settings.api_key, require_key=settings.require_key)
        limiter = RateLimiter(settings.rate_limits)
        api: ASGIApp = RequestGate(
            self.by_fastapi,
            authenticator=authenticator,
            limiter=limiter,
            max_body_bytes=settings.max_body_bytes,
            direct=direct_handlers(ROUTERS),
            on_traffic=parts.traffic.record_call,
        )
        if settings.cors_origins:
            api = CORSMiddleware(
                api,
                allow_origins=list(settings.cors_origins),
                allow_methods=["*"],
                allow_headers=["*"],
                expose_headers=EXPOSED_HEADERS,
            )
        self.state.authenticator = authenticator
        self.state.gateway = gateway.open_gateway(settings)
        self.entry = PageGate(api, parts, authenticator, limiter)


async def _build_models() -> None:
    """Builds all models in a thread, so that later requests need not. Until then a request builds what it needs."""
    await asyncio.sleep(MODEL_BUILD_DELAY)
    for model in (RequestModel, ResponseModel, Setting):
        await asyncio.to_thread(build_model, model)


def create_app(settings: Settings) -> FastAPI:
    """The application. It builds Reflexio when it starts, unless `app.state.reflexio` is there already."""

    @asynccontextmanager
    async def lifespan(app: ServerApp) -> AsyncIterator[None]:
        parts = getattr(app.state, "reflexio", None) or await build(settings)
        app.open_gate(parts)
        parts.start_serving()
        models = asyncio.create_task(_build_models())
        try:
            yield
        finally:
            models.cancel()
            if app.state.gateway:
                await app.state.gateway.aclose()
            await parts.close()

    _check_route_names(settings.rate_limits)
    app = ServerApp(
        title="Reflexio",
        summary=SUMMARY,
        version=reflexio.__version__,
        lifespan=lifespan,
        responses=problems.DOCUMENTED,
        docs_url=None,
        redoc_url=None,
    )
    problems.install(app)
    for router in ROUTERS:
        app.include_router(router)
    routes = [*app.routes, *(route for router in ROUTERS for route in router.routes)]
    check_routes(app, routes, lambda path: OPEN_PATHS.fullmatch(path) is not None)
    return app


def _check_route_names(limits: Sequence[RateLimit]) -> None:
    """A rate limit for an unknown route would limit nothing, silently."""
    known = {route_name(route.path) for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)}
    for limit in limits:
        if limit.route not in ("*", *known):
            from difflib import get_close_matches

            near = get_close_matches(limit.route, known) or sorted(name for name in known if limit.route in name)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise InvalidRequest(f"REFLEXIO_RATE_LIMITS: there is no route {limit.route!r}{hint}")
