"""Sign-in with an API key, sign-out, and the theme."""

from starlette.responses import RedirectResponse, Response

from reflexio.dashboard.routing import Pages, local_path
from reflexio.dashboard.sessions import COOKIE, LASTS
from reflexio.dashboard.visit import THEME_COOKIE, THEMES, Visit

pages = Pages()

WRONG_KEY = "This key is not valid here. It may have been revoked; `reflexio keys list` shows the valid ones."
YEAR = 365 * 86_400


@pages.get("/sign-in", None)
async def sign_in_form(visit: Visit) -> Response:
    """The form. Who is signed in, or needs no key, goes on at once."""
    target = local_path(visit.asked("next"))
    return visit.go(target) if visit.visitor.caller else visit.page("sign_in.html", target=target, error="")


@pages.post("/sign-in", None)
async def sign_in(visit: Visit) -> Response:
    form = await visit.form()
    target = local_path(form.get("next", ""))
    cookie = await visit.request.scope["sign_in"](form.get("key", "").strip())
    if cookie is None:
        return visit.page("sign_in.html", status=403, target=target, error=WRONG_KEY)
    response = RedirectResponse(target, 303)
    visit.set_cookie(response, COOKIE, cookie, LASTS)
    return response


@pages.post("/sign-out", None)
async def sign_out(visit: Visit) -> Response:
    response = visit.go("/sign-in")
    response.delete_cookie(COOKIE)
    return response


@pages.post("/theme", None)
async def choose_theme(visit: Visit) -> Response:
    """Light, dark, or what the system prefers."""
    form = await visit.form()
    response = visit.go(form.get("next", "/"))
    theme = form.get("theme", "")
    if theme in THEMES:
        visit.set_cookie(response, THEME_COOKIE, theme, YEAR)
    else:
        response.delete_cookie(THEME_COOKIE)
    return response
