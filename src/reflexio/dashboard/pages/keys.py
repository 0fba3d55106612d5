"""API keys of an organisation: who may do what, a new key that is shown once, and revoking one."""

from starlette.responses import Response

from reflexio.dashboard.routing import Pages
from reflexio.dashboard.sessions import COOKIE, LASTS
from reflexio.dashboard.visit import Form, Visit
from reflexio.errors import InvalidRequest
from reflexio.models.access import KeyScope
from reflexio.organisations import keys

pages = Pages()

SCOPES = {
    KeyScope.PUBLISH: "store conversations and record outcomes",
    KeyScope.READ: "read everything, search, get contexts",
    KeyScope.REVIEW: "decide, edit, delete, run operations",
    KeyScope.ADMIN: "change settings and keys, erase users",
}
"""Each scope, and what a key that has it may do."""


@pages.get("/settings/keys", KeyScope.ADMIN)
async def keys_list(visit: Visit) -> Response:
    """The valid keys, with their scopes and owners."""
    return await _show(visit)


@pages.post("/settings/keys", KeyScope.ADMIN)
async def create(visit: Visit) -> Response:
    """Creates a key and shows its token, once. Who makes the first key is signed in with it."""
    form, database = await visit.form(), visit.parts.database
    is_first = not visit.visitor.is_signed_in and not await keys.any_exists(database)
    try:
        owner, scopes = form.get("owner", ""), _scopes(form)
        if is_first and KeyScope.ADMIN not in scopes:
            raise InvalidRequest(
                "The first key needs the scope admin: without it, nobody could create another one here."
            )
        created = await keys.create(
            database, visit.parts.clock, visit.caller.org_id, _label(form), scopes=scopes, owner=owner
        )
    except InvalidRequest as error:
        return await _show(visit, error=str(error), form=form)
    response = await _show(visit, created=created, is_first=is_first)
    if is_first:
        # From now on the server asks for a key: without this, the visitor would be locked out of the page they see.
        cookie = await visit.request.scope["sign_in"](created.token)
        if cookie is not None:
            visit.set_cookie(response, COOKIE, cookie, LASTS)
    return response


@pages.post("/settings/keys/revoke", KeyScope.ADMIN)
async def revoke(visit: Visit) -> Response:
    form = await visit.form()
    text = form.get("key", "")
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else 0
    await keys.revoke(visit.parts.database, visit.parts.clock, number, org_id=visit.caller.org_id)
    return visit.go("/settings/keys", f"Key {number} is revoked. It stops working within two seconds.")


async def _show(
    visit: Visit,
    *,
    created: keys.NewKey | None = None,
    is_first: bool = False,
    error: str = "",
    form: Form | None = None,
) -> Response:
    stored = await keys.of_organisation(visit.parts.database, visit.caller.org_id)
    return visit.page(
        "keys.html",
        status=422 if error else 200,
        keys=[(key, keys.describe_scopes(key.scopes)) for key in stored],
        scopes=SCOPES,
        created=created,
        is_first=is_first,
        error=error,
        typed={
            "owner": form.get("owner", "") if form else "",
            "label": form.get("label", "") if form else "",
            "scopes": form.getlist("scope") if form else [],
        },
        needs_key=visit.visitor.is_signed_in or bool(stored),
    )


def _scopes(form: Form) -> frozenset[KeyScope]:
    return keys.parse_scopes(",".join(form.getlist("scope")))


def _label(form: Form) -> str:
    label = form.get("label", "").strip()
    if len(label) > keys.LONGEST_NAME:
        raise InvalidRequest(f"A note has at most {keys.LONGEST_NAME} characters.")
    return label
