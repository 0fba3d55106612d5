"""Who sees pages of a real server, and which forms it takes."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from reflexio.models.access import KeyScope
from tests.builders import new_key
from tests.conftest import Org, Running, StartServer

HTML = {"Accept": "text/html"}
OWN = {"Sec-Fetch-Site": "same-origin"}
PAGES = ("/", "/sign-in")


@pytest.fixture
def browser(server: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, headers={**HTML, **OWN}) as client:
        yield client


def sign_in(browser: httpx.Client, key: str, target: str = "/") -> httpx.Response:
    return browser.post("/sign-in", data={"key": key, "next": target})


def form_token(page: httpx.Response) -> str:
    return page.text.partition('name="form_token" value="')[2].partition('"')[0]


def test_a_key_opens_the_pages_until_it_is_revoked(server: Running, browser: httpx.Client, org: Org) -> None:
    assert browser.get("/").headers["location"] == "/sign-in"
    answer = sign_in(browser, org.token)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert org.token.lower() not in cookie
    page = browser.get("/")
    assert page.status_code == 200
    assert org.id in page.text
    revoke(server.folder, org.id)
    assert browser.get("/").status_code == 303


def revoke(folder: Path, org: str) -> None:
    from reflexio.organisations import keys
    from reflexio.ports.clock import SystemClock
    from reflexio.storage.sqlite import SqliteDatabase
    from tests.builders import on_database

    async def act(database: SqliteDatabase) -> None:
        for key in await database.read_keys(lambda rows: rows.list()):
            if key.org_id == org:
                await keys.revoke(database, SystemClock(), key.id)

    on_database(folder, act)


@pytest.mark.parametrize("key", ["", "rfx_wrong", "é", "x" * 5000])
def test_a_wrong_key_opens_nothing_and_says_so(browser: httpx.Client, key: str) -> None:
    answer = sign_in(browser, key)
    assert answer.status_code == 403
    assert "not valid here" in answer.text
    assert "set-cookie" not in answer.headers
    assert not key or key not in answer.text


@pytest.mark.parametrize("target", ["//evil.example", "/\t/evil.example", "/\\evil.example", "https://evil.example"])
def test_nobody_is_sent_elsewhere_after_signing_in(browser: httpx.Client, org: Org, target: str) -> None:
    assert sign_in(browser, org.token, target).headers["location"] == "/"
    assert browser.get("/sign-in", params={"next": target}).headers["location"] == "/"


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {},
    ],
)
def test_forms_from_elsewhere_are_refused(server: Running, org: Org, headers: dict[str, str]) -> None:
    with httpx.Client(base_url=server.url, headers={**HTML, **headers}) as browser:
        assert sign_in(browser, org.token).status_code == 403
        browser.headers.update(OWN)
        sign_in(browser, org.token)
        token = form_token(browser.get("/"))
        browser.headers.pop("sec-fetch-site")
        browser.headers.update(headers)
        assert browser.post("/theme", data={"theme": "dark", "form_token": token}).status_code == 403
        assert "reflexio_theme" not in browser.cookies


def test_a_link_from_elsewhere_is_followed_once_more_from_here(browser: httpx.Client) -> None:
    answer = browser.get("/conversations?q=%22%3E%3Cscript%3E", headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200
    assert 'content="0; url=/conversations?q=%22%3E%3Cscript%3E"' in answer.text
    assert browser.get("/conversations").headers["location"] == "/sign-in?next=%2Fconversations"


def test_a_form_needs_the_token_of_its_session(browser: httpx.Client, org: Org) -> None:
    sign_in(browser, org.token)
    token = form_token(browser.get("/"))
    for wrong in ("", "0" * 64, token[::-1]):
        assert browser.post("/theme", data={"theme": "dark", "form_token": wrong}).status_code == 403
    assert browser.post("/theme", data={"theme": "dark", "form_token": token, "next": "/"}).status_code == 303
    assert 'data-theme="dark"' in browser.get("/").text


def test_a_browser_without_fetch_headers_is_known_by_its_origin(server: Running, org: Org) -> None:
    with httpx.Client(base_url=server.url, headers={**HTML, "Origin": server.url}) as browser:
        assert sign_in(browser, org.token).status_code == 303
        browser.headers["Origin"] = "http://127.0.0.1:1"
        assert sign_in(browser, org.token).status_code == 403


def test_without_keys_this_machine_sees_pages_and_no_other_host(open_server: Running) -> None:
    assert httpx.get(open_server.url, headers=HTML).status_code == 200
    for headers in ({"Host": "evil.example"}, {"X-Forwarded-For": "10.0.0.1"}, {"Origin": "https://evil.example"}):
        refused = httpx.get(open_server.url, headers={**HTML, **headers})
        assert refused.status_code == 403
        assert "reflexio keys create" in refused.text


def test_without_keys_a_form_needs_a_token_too(open_server: Running) -> None:
    with httpx.Client(base_url=open_server.url, headers={**HTML, **OWN}) as browser:
        assert browser.post("/theme", data={"theme": "dark"}).status_code == 403
        data = {"theme": "dark", "form_token": form_token(browser.get("/"))}
        assert browser.post("/theme", data=data).status_code == 303


def test_a_key_that_may_not_read_sees_a_page_that_says_so(server: Running, browser: httpx.Client, org: Org) -> None:
    sign_in(browser, new_key(server.folder, org.id, scopes=frozenset({KeyScope.PUBLISH})))
    assert "This key may not read" in browser.get("/").text


@pytest.mark.parametrize("path", PAGES)
def test_pages_allow_nothing_from_elsewhere_and_are_not_kept(open_server: Running, path: str) -> None:
    headers = httpx.get(open_server.url + path, headers=HTML).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"


def test_files_of_pages_are_kept_for_ever_under_their_hash_only(open_server: Running) -> None:
    page = httpx.get(open_server.url, headers=HTML).text
    path = page.partition('rel="stylesheet" href="')[2].partition('"')[0]
    answer = httpx.get(open_server.url + path)
    assert answer.headers["content-encoding"] == "gzip"
    assert "immutable" in answer.headers["cache-control"]
    assert httpx.get(f"{open_server.url}/static/000000000000/style.css").headers["cache-control"] == "no-cache"
    for missing in ("/static/x/../../app.py", "/static/x/%2e%2e/app.py", "/static/app.py", "/static/"):
        assert httpx.get(open_server.url + missing, headers=HTML).status_code == 404


def test_unknown_pages_and_wrong_methods_are_pages_too(open_server: Running) -> None:
    assert "There is no such page" in httpx.get(f"{open_server.url}/learnings/x/y/z", headers=HTML).text
    assert httpx.get(f"{open_server.url}/sign-out", headers=HTML).status_code == 405
    assert httpx.get(open_server.url).json()["name"] == "Reflexio"


def test_a_form_that_is_too_large_or_broken_is_refused(open_server: Running) -> None:
    with httpx.Client(base_url=open_server.url, headers={**HTML, **OWN}) as browser:
        assert browser.post("/theme", content=b"a=" + b"x" * 3_000_000).status_code == 413
        assert browser.post("/theme", content=b"\xff\xfe=1").status_code == 422
        assert browser.post("/theme", content=b"&".join([b"a=1"] * 3000)).status_code == 422


def test_rate_limits_cover_pages(start_server: StartServer) -> None:
    server = start_server(REFLEXIO_RATE_LIMITS="2/minute")
    statuses = [httpx.get(server.url, headers=HTML).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
