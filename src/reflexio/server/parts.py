"""What a route may ask for: the running Reflexio, and the caller's own store."""

from typing import Annotated

from fastapi import Depends, Request

from reflexio.ports.storage import Store
from reflexio.wiring import Reflexio


async def _house(request: Request) -> Reflexio:
    house: Reflexio = request.app.state.reflexio
    return house


async def _store(request: Request) -> Store:
    house: Reflexio = request.app.state.reflexio
    return house.database.of(request.scope["org_id"])


House = Annotated[Reflexio, Depends(_house)]
OrgStore = Annotated[Store, Depends(_store)]
