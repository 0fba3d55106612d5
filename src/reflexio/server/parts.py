"""What a route needs besides its arguments: the running Reflexio, and the caller's own store."""

from starlette.requests import Request

from reflexio.app import Reflexio
from reflexio.ports.storage import Store


def house(request: Request) -> Reflexio:
    parts: Reflexio = request.app.state.reflexio
    return parts


def store(request: Request) -> Store:
    return house(request).database.of(request.scope["org_id"])
