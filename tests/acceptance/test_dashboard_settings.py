"""Settings, keys and models in the dashboard of a real server, with plain forms."""

import json
import re
from collections.abc import Callable, Iterator

import httpx
import pytest

from reflexio.client.sync import ReflexioClient
from reflexio.models.access import KeyScope
from tests.builders import new_key
from tests.conftest import Org, Running, StartServer
from tests.pages import BROWSER, OpenedPage, PageBrowser, PageForm, browsing
from tests.scripted_model import scripted_model

SECRET = "sk-secret-of-the-dashboard"
ENDPOINT = "api_key_config.custom_endpoint"


@pytest.fixture
def admin(org: Org) -> Iterator[PageBrowser]:
    with browsing(org) as browser:
        yield browser


def form(browser: PageBrowser) -> PageForm:
    return browser.open("/settings").form("/settings")


def window(client: ReflexioClient) -> int:
    return client.get_config().window_size


def new_token(page: OpenedPage) -> str:
    found = re.search(r"rfx_[\w-]{20,}", page.text)
    assert found, page.text
    return found[0]


# --- configuration


def test_a_preview_says_what_would_follow_and_stores_nothing(client: ReflexioClient, admin: PageBrowser) -> None:
    page = admin.send(form(admin), window_size="20", stride_size="16", daily_token_budget="0", act="preview")
    assert "What saving would do" in page.text
    assert "after 16 turns instead of 8" in page.text
    assert "learning waits until tomorrow" in page.text
    assert "<code>window_size</code>" in page.text
    assert window(client) == 10
    saved = admin.send(page.form("/settings"), act="save")
    assert "Configuration saved" in saved.text
    config = client.get_config()
    assert (config.window_size, config.stride_size, config.daily_token_budget) == (20, 16, 0)


def test_an_untouched_form_would_change_nothing(admin: PageBrowser) -> None:
    assert "Nothing would change" in admin.send(form(admin), act="preview").text


def test_enabling_the_optimiser_says_what_it_still_needs(admin: PageBrowser) -> None:
    page = admin.send(form(admin), **{"playbook_optimizer_config.enabled": "yes", "act": "preview"})
    assert "at most 20 evaluations each" in page.text
    assert "the optimiser cannot run yet" in page.text


@pytest.mark.parametrize(
    ("field", "text", "words"),
    [
        ("window_size", "many", "valid integer"),
        ("stride_size", "50", "stride_size (50) must not be greater"),
        ("context_always_share", "3", "less than or equal to 1"),
        ("playbook_configs.0.playbook_definition_prompt", "", "at least 1 character"),
        ("llm_config.generation_model_name", "nosuch:model", "nosuch"),
        ("playbook_optimizer_config.webhook_url", "ftp://x", "http"),
    ],
)
@pytest.mark.parametrize("act", ["preview", "save"])
def test_what_is_not_valid_is_said_and_what_was_typed_is_kept(
    client: ReflexioClient, admin: PageBrowser, field: str, text: str, words: str, act: str
) -> None:
    before = client.get_config()
    page = admin.send(form(admin), **{field: text, "agent_context_prompt": "A shop", "act": act})
    assert page.status == 422
    assert words in page.text.partition('role="alert"')[2].partition("</div></div>")[0]
    assert dict(page.form("/settings").fields)["agent_context_prompt"] == "A shop"
    assert client.get_config() == before


def test_a_secret_is_stored_and_never_shown_again(client: ReflexioClient, admin: PageBrowser) -> None:
    with scripted_model(otherwise={"word": "yes"}) as model:
        typed = {f"{ENDPOINT}.model": "scripted", f"{ENDPOINT}.api_key": SECRET, f"{ENDPOINT}.api_base": model.url}
        planned = admin.send(form(admin), **typed, act="preview")
        assert "learned with scripted" in planned.text
        assert SECRET not in planned.text.partition("<form id=")[0]
        admin.send(planned.form("/settings"), act="save")
        page = admin.open("/settings")
        assert SECRET not in page.text
        admin.send(page.form("/settings"), window_size="12", act="save")
        assert SECRET not in json.dumps(admin.client.get("/settings").text)

        tested = admin.send(admin.open("/settings/models").form("/settings/models"))
        assert "structured output by tools" in tested.text
        assert "custom:scripted" in tested.text
        assert SECRET not in tested.text
        assert model.requests[0].headers["authorization"] == f"Bearer {SECRET}"


def test_two_people_do_not_overwrite_each_other(client: ReflexioClient, admin: PageBrowser) -> None:
    stale = form(admin)
    client.update_config({"agent_context_prompt": "A bank"})
    page = admin.send(stale, window_size="30", act="save")
    assert page.status == 409
    assert "Somebody else has changed the settings" in page.text
    assert dict(page.form("/settings").fields)["agent_context_prompt"] == "A bank"
    config = client.get_config()
    assert (config.window_size, config.agent_context_prompt) == (10, "A bank")


def test_everything_can_be_edited_as_json(client: ReflexioClient, admin: PageBrowser) -> None:
    page = admin.open("/settings").form("/settings", form_id="json")
    document = json.loads(dict(page.fields)["document"])
    document["redaction"] = ["email"]
    planned = admin.send(page, document=json.dumps(document), act="preview")
    assert "email is replaced by a mark" in planned.text
    admin.send(planned.form("/settings", form_id="json"), act="save")
    assert [kind.value for kind in client.get_config().redaction] == ["email"]


@pytest.mark.parametrize(
    "document", ["{", "[]", "null", '{"window_size": []}', '{"nosuch": 1}', '{"playbook_configs": "x"}']
)
def test_json_that_makes_no_sense_is_refused_and_kept(admin: PageBrowser, document: str) -> None:
    page = admin.send(admin.open("/settings").form("/settings", form_id="json"), document=document, act="save")
    assert page.status == 422
    assert dict(page.form("/settings", form_id="json").fields)["document"] == document


def test_without_the_scope_admin_settings_are_shown_and_not_changed(
    server: Running, org: Org, client: ReflexioClient, admin: PageBrowser
) -> None:
    filled = form(admin)
    with browsing(org, new_key(server.folder, org.id, scopes=frozenset({KeyScope.READ}))) as reader:
        page = reader.open("/settings")
        assert "needs the scope admin" in page.text
        token = dict(page.form("/theme").fields)["form_token"]
        assert reader.send(filled, form_token=token, window_size="30", act="save").status == 403
        reader.open("/settings/keys", status=403)
        assert not reader.open("/settings/models").has_form("/settings/models")
    assert window(client) == 10


# --- keys


def test_a_key_is_created_with_scopes_and_owner_shown_once_and_revoked(org: Org, admin: PageBrowser) -> None:
    blank = admin.open("/settings/keys").form("/settings/keys")
    page = admin.send(blank, ("scope", "read"), ("scope", "review"), owner="eve", label="laptop")
    token = new_token(page)
    assert token not in admin.open("/settings/keys").text
    headers = {"Authorization": f"Bearer {token}"}
    who = httpx.get(f"{org.url}/api/whoami", headers=headers).json()
    assert who["org_id"] == org.id
    assert httpx.post(f"{org.url}/api/set_config", json={}, headers=headers).status_code == 403
    revoking = [form for form in admin.open("/settings/keys").forms if form.action == "/settings/keys/revoke"]
    assert len(revoking) == 2
    newest = max(revoking, key=lambda form: int(dict(form.fields)["key"]))
    assert "is revoked" in admin.send(newest).text
    assert token[:8] not in admin.open("/settings/keys").text.partition("<table")[2]


@pytest.mark.parametrize(
    ("fields", "words"),
    [({}, "at least one scope"), ({"scope": "root"}, "root"), ({"scope": "read", "owner": "x" * 300}, "255")],
)
def test_a_key_that_makes_no_sense_is_not_created(admin: PageBrowser, fields: dict[str, str], words: str) -> None:
    page = admin.send(admin.open("/settings/keys").form("/settings/keys"), **fields)
    assert page.status == 422
    assert words in page.text
    assert "rfx_" not in page.text.partition("<table")[0]


def test_keys_of_another_organisation_are_neither_seen_nor_revoked(
    make_org: Callable[[], Org], admin: PageBrowser
) -> None:
    other = make_org()
    with browsing(other) as theirs:
        revoking = theirs.open("/settings/keys").form("/settings/keys/revoke")
        number = dict(revoking.fields)["key"]
    mine = admin.open("/settings/keys")
    assert other.token[:8] not in mine.text
    assert admin.send(mine.form("/settings/keys/revoke"), key=number).status == 404
    assert httpx.get(f"{other.url}/api/whoami", headers={"Authorization": f"Bearer {other.token}"}).status_code == 200


def test_who_makes_the_first_key_is_signed_in_with_it(start_server: StartServer) -> None:
    server = start_server()
    with httpx.Client(base_url=server.url, headers=BROWSER) as client:
        browser = PageBrowser(client)
        blank = browser.open("/settings/keys").form("/settings/keys")
        assert "needs the scope admin" in browser.send(blank, ("scope", "read")).text
        scopes = [("scope", scope.value) for scope in KeyScope]
        page = browser.send(blank, *scopes, owner="eve")
        assert "you are signed in with this one" in page.text
        token = new_token(page)
        assert browser.open("/settings").has_form("/settings")
    with httpx.Client(base_url=server.url, headers={**BROWSER, "Authorization": f"Bearer {token}"}) as known:
        assert known.get("/settings").status_code == 200
