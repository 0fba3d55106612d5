"""Which paths are pages, and where a visitor may be sent."""

import pytest

from reflexio.dashboard.navigation import ENTRIES
from reflexio.dashboard.pages import PAGES
from reflexio.dashboard.routing import PLACES, Pages, is_page, local_path
from reflexio.models.access import KeyScope


@pytest.mark.parametrize(
    "target",
    [
        "", "//evil.example", "///evil.example", "https://evil.example", "https:evil.example", "javascript:alert(1)",
        "/\\evil.example", "\\\\evil.example", "/\t/evil.example", "/\n/evil.example", "\t//evil.example", "/ /evil",
        "/review/\x00", "/review//evil.example", "/review/../..//evil.example", "/api/whoami", "review", "/health",
        "http://[broken/review", "//[broken",
    ],
)  # fmt: skip
def test_only_pages_of_ours_are_gone_to(target: str) -> None:
    assert local_path(target) == "/"


@pytest.mark.parametrize(
    "target",
    ["/", "/?days=7", "/conversations", "/conversations/a%2Fb?q=late%20order&user=ann%40x", "/learnings?next=//evil"],
)
def test_pages_of_ours_keep_their_address(target: str) -> None:
    assert local_path(target) == target


def test_signs_that_an_address_does_not_have_are_escaped() -> None:
    assert local_path("/learnings?q=\u2028é<") == "/learnings?q=%E2%80%A8%C3%A9%3C"


def test_the_index_of_the_api_stays_for_programs() -> None:
    assert is_page("GET", "/", "text/html,application/xhtml+xml,*/*;q=0.8")
    assert not is_page("GET", "/", "application/json")
    assert not is_page("GET", "/", "*/*")
    assert is_page("POST", "/sign-in", "")
    assert not any(is_page("GET", path, "text/html") for path in ("/api/whoami", "/health", "/docs", "/v1/x", "/mcp"))


def test_a_page_outside_the_dashboard_cannot_be_declared() -> None:
    with pytest.raises(TypeError, match="PLACES"):
        Pages().get("/api/pages", KeyScope.READ)


def test_every_page_has_one_answer_and_every_action_a_scope_or_is_known_to_need_none() -> None:
    routes = [route for pages in PAGES for route in pages.routes]
    assert len({(route.method, route.path) for route in routes}) == len(routes)
    open_to_all = {(route.method, route.path) for route in routes if route.scope is None}
    access = {("GET", "/sign-in"), ("POST", "/sign-in"), ("POST", "/sign-out"), ("POST", "/theme")}
    assert open_to_all <= {*access, ("GET", "/")}
    assert all(entry.path == "/" or entry.path.strip("/") in PLACES for entry in ENTRIES)
