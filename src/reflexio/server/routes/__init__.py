"""The routes, one module a topic. A route function takes the request and its arguments, calls a service and answers.

Here is what every route function needs besides: the running Reflexio, and the store of the caller's organisation.
Who answers a route, FastAPI or `server/direct.py`, is declared with the route.
"""

from starlette.requests import Request

from reflexio.app import Reflexio
from reflexio.ports.storage import Store
from reflexio.server.scopes import get_caller


def get_reflexio(request: Request) -> Reflexio:
    """The running Reflexio."""
    parts: Reflexio = request.app.state.reflexio
    return parts


def get_store(request: Request) -> Store:
    """The store of the caller's organisation."""
    return get_reflexio(request).database.of(get_caller(request).org_id)
