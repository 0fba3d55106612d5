"""The HTTP application around a running Reflexio."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from reflexio.app import Reflexio, build
from reflexio.errors import InvalidRequest
from reflexio.models.config import Setting
from reflexio.models.shape import Answered, Sent
from reflexio.models.shape import build as build_model
from reflexio.server import problems
from reflexio.server.auth import Gate
from reflexio.server.body import Handler, JsonRoute
from reflexio.server.entry import Entry
from reflexio.server.limits import Limiter, name
from reflexio.server.routes import (
    aggregation,
    documentation,
    generation,
    health,
    interactions,
    learnings,
    operations,
    optimisation,
    outcomes,
    review,
    searching,
    settings,
)
from reflexio.settings import RateLimit, Settings

# FastAPI silences this while it makes a route; ours are built later, when it no longer does.
warnings.filterwarnings("ignore", category=UnsupportedFieldAttributeWarning)

FIRST_CALLS = 0.3
"""Seconds in which a server that has just started does nothing but answer."""
EXPOSED = ("Retry-After", "X-Request-ID")
"""Headers that a web page of an allowed origin may read."""
SUMMARY = "The learning layer for AI agents: publish what happened, get back what was learned."
ROUTES = (
    documentation,
    health,
    interactions,
    learnings,
    outcomes,
    operations,
    generation,
    aggregation,
    review,
    optimisation,
    searching,
    settings,
)


def _install(app: FastAPI, house: Reflexio) -> None:
    app.state.reflexio = house
    app.state.stopping = False
    app.state.gate = Gate(house.database, house.settings.api_key)
    app.state.limiter = Limiter(house.settings.rate_limits)


def _straight() -> dict[tuple[str, str], Handler]:
    """The routes that need nothing of the router, by method and path."""
    routes = [route for module in ROUTES for route in module.router.routes]
    plain = [route for route in routes if isinstance(route, JsonRoute) and route.is_plain]
    return {(method, route.path): route.straight() for route in plain for method in route.methods or ()}


class App(FastAPI):
    """FastAPI behind our entry: what the entry answers itself passes none of the rooms in between."""

    entry: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        scope["app"] = self
        await self.entry(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        """The document, and how a key is sent: one is needed as soon as there is any."""
        if not self.openapi_schema:
            document = super().openapi()
            document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
            document["security"] = [{"key": []}, {}]
        return super().openapi()

    async def by_router(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().__call__(scope, receive, send)


async def _build_models() -> None:
    """In a thread and a moment later: whoever is first builds the one model that it needs, and waits for no other."""
    await asyncio.sleep(FIRST_CALLS)
    for shape in (Sent, Answered, Setting):
        await asyncio.to_thread(build_model, shape)


def create_app(config: Settings) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        house = getattr(app.state, "reflexio", None) or await build(config)
        _install(app, house)
        house.start()
        building = asyncio.create_task(_build_models())
        try:
            yield
        finally:
            building.cancel()
            await house.close()

    _must_be_routes(config.rate_limits)
    app = App(
        title="Reflexio",
        summary=SUMMARY,
        version=version("reflexio"),
        lifespan=lifespan,
        responses=problems.DOCUMENTED,
        docs_url=None,
    )
    app.entry = Entry(app.by_router, max_body_bytes=config.max_body_bytes, straight=_straight())
    if config.cors_origins:
        app.entry = CORSMiddleware(
            app.entry,
            allow_origins=list(config.cors_origins),
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=EXPOSED,
        )
    problems.install(app)
    for module in ROUTES:
        app.include_router(module.router)
    return app


def _must_be_routes(limits: Sequence[RateLimit]) -> None:
    """A limit for a route that is not there would limit nothing, without a word."""
    if not limits:
        return
    from difflib import get_close_matches

    known = {name(route.path) for module in ROUTES for route in module.router.routes if isinstance(route, APIRoute)}
    for limit in limits:
        if limit.route not in ("*", *known):
            near = get_close_matches(limit.route, known) or sorted(each for each in known if limit.route in each)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise InvalidRequest(f"REFLEXIO_RATE_LIMITS: there is no route {limit.route!r}{hint}")
