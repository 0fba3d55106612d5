"""Export and import of the caller's organisation, page by page."""

from fastapi import Request

from reflexio.models.access import KeyScope
from reflexio.models.transfer import ExportRowsRequest, ExportRowsResponse, ImportRowsRequest, ImportRowsResponse
from reflexio.server.direct import Router
from reflexio.server.routes import get_reflexio, get_store
from reflexio.transfer import export, importing

router = Router(prefix="/api", tag="transfer")


@router.direct("POST", "/export_rows", KeyScope.ADMIN)
async def export_rows(request: Request, body: ExportRowsRequest) -> ExportRowsResponse:
    """One page of all that the organisation has stored, without secrets, in at most 8 MiB or one publish.

    `reflexio export` and `client.export_organisation` make one file of all pages.
    """
    return await export.export_rows(get_store(request), body)


@router.direct("POST", "/import_rows", KeyScope.ADMIN)
async def import_rows(request: Request, body: ImportRowsRequest) -> ImportRowsResponse:
    """Stores rows of an export, all or none. Those that are there already stay as they are.

    `reflexio import` and `client.import_organisation` send a file in parts of this kind.
    """
    parts = get_reflexio(request)
    checks = parts.check_config, parts.optimisation.check_assistant
    return await importing.import_rows(get_store(request), parts.clock, parts.scopes, body, *checks)
