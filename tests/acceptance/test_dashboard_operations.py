"""Operations, optimiser runs, the playground and the status in the dashboard of a real server, with plain forms."""

import json
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from reflexio.client.sync import ReflexioClient
from reflexio.jobs import operations
from reflexio.models.access import KeyScope
from reflexio.models.learning import Status
from reflexio.models.optimisation import PlaybookOptimizationJob
from reflexio.models.usage import Stall
from reflexio.ports.storage import Tx
from tests.acceptance.aggregation_talks import CUSTOMERS, complaint
from tests.builders import eventually, name, new_key, on_database, turns
from tests.conftest import Org, Running
from tests.pages import BROWSER, PageBrowser, browsing

SERVICE = "profile_generation"
Write = Callable[[Callable[[Tx], object]], object]
RULE = "Ask the neighbours before you offer a refund."


@pytest.fixture
def browser(org: Org) -> Iterator[PageBrowser]:
    with browsing(org) as browser:
        yield browser


@pytest.fixture
def write(server: Running, org: Org) -> Write:
    """Writes as the background does."""
    return lambda act: on_database(server.folder, lambda database: database.of(org.id).write(act))


def now() -> int:
    return int(time.time())


def begin(tx: Tx, operation_id: str) -> object:
    return operations.begin(tx, SERVICE, operation_id, {"user_id": "<b>ann</b>"}, now(), total_users=4)


# --- operations


def test_aggregation_is_begun_from_the_page_and_followed(client: ReflexioClient, browser: PageBrowser) -> None:
    for number, user in enumerate(CUSTOMERS[:3]):
        client.publish_interaction(user, complaint(number), agent_version="v1", wait_for_response=True)
    form = browser.open("/operations").form("/operations/aggregate")
    page = browser.send(form, version="v1")
    assert "Aggregation" in page.text
    path = page.response.url.path
    eventually(lambda: ">completed<" in browser.open(path).text)
    assert "See what waits for review" in browser.open(path).text
    assert client.get_review_queue(agent_version="v1").items


def test_progress_arrives_as_events(org: Org, browser: PageBrowser, write: Write) -> None:
    operation_id = name("operation")
    write(lambda tx: begin(tx, operation_id))
    told = []
    with browser.client.stream("GET", f"/operations/{operation_id}/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        for line in stream.iter_lines():
            if line.startswith("data: "):
                told.append(json.loads(line.removeprefix("data: ")))
                if len(told) == 1:
                    write(lambda tx: operations.record_user(tx, operation_id, "ann", now()))
                elif len(told) == 2:
                    write(lambda tx: operations.finish(tx, operation_id, now()))
    assert [event["percentage"] for event in told] == [0.0, 25.0, 100.0]
    assert told[1]["words"] == "1 of 4 done"
    assert told[-1]["has_ended"]


def test_a_running_operation_is_shown_and_cancelled(browser: PageBrowser, write: Write) -> None:
    operation_id = name("operation")
    write(lambda tx: begin(tx, operation_id))
    page = browser.open("/operations")
    assert f'data-follow="/operations/{operation_id}/events"' in page.text
    assert '<noscript><meta http-equiv="refresh"' in page.text
    assert "<b>ann</b>" not in browser.open(f"/operations/{operation_id}").text
    assert "It stops after what it is at" in browser.send(page.form("/operations/cancel")).text
    assert ">stopping<" in browser.open("/operations").text
    assert "Nothing of that kind runs" in browser.send(page.form("/operations/cancel"), service="other").text


def test_results_of_a_rerun_are_made_current_and_brought_back(
    org: Org, client: ReflexioClient, browser: PageBrowser
) -> None:
    statuses = (Status.CURRENT, Status.PENDING)
    client.add_user_profile([{"user_id": "ann", "content": status.value, "status": status} for status in statuses])
    page = browser.open("/operations")
    assert "1 rerun result waits: profiles" in page.text
    page = browser.send(page.form("/operations/upgrade"))
    assert "1 are current now; 1 were archived" in page.text
    assert current(org) == ["pending"]
    browser.send(browser.open("/operations").form("/operations/downgrade"))
    assert current(org) == ["current"]


def current(org: Org) -> list[str]:
    with org.client() as client:
        return [profile.content for profile in client.get_profiles("ann").user_profiles]


def test_a_rerun_is_begun_or_says_why_not(client: ReflexioClient, browser: PageBrowser) -> None:
    form = browser.open("/operations").form("/operations/rerun")
    nothing = browser.send(form, kind="profiles", user="nobody")
    assert nothing.response.url.path == "/operations"
    assert 'class="toast"' in nothing.text
    client.publish_interaction("ann", turns("I am allergic to nuts.", "Noted."), wait_for_response=True)
    page = browser.send(form, kind="profiles", user="ann")
    assert "Rerun of profiles" in page.text
    eventually(lambda: ">completed<" in browser.open(page.response.url.path).text)
    assert browser.send(form, kind="everything").status == 422


def test_operations_of_others_and_unknown_ones_are_not_there(
    make_org: Callable[[], Org], browser: PageBrowser, write: Write
) -> None:
    operation_id = name("operation")
    write(lambda tx: begin(tx, operation_id))
    with browsing(make_org()) as other:
        for path in (f"/operations/{operation_id}", f"/operations/{operation_id}/events", "/operations/none"):
            other.open(path, status=404)


def test_a_reader_begins_and_cancels_nothing(server: Running, org: Org, browser: PageBrowser) -> None:
    form = browser.open("/operations").form("/operations/aggregate")
    with browsing(org, new_key(server.folder, org.id, scopes=frozenset({KeyScope.READ}))) as reader:
        page = reader.open("/operations")
        token = dict(page.form("/theme").fields)["form_token"]
        assert not page.has_form("/operations/aggregate")
        assert reader.send(form, form_token=token, version="v1").status == 403


# --- optimiser


def test_a_plan_says_why_a_run_cannot_start(client: ReflexioClient, browser: PageBrowser) -> None:
    (number,) = client.add_agent_playbooks([{"content": RULE}]).ids
    page = browser.open(f"/optimisations/new?agent_playbook={number}")
    assert "Optimisation is disabled" in page.text
    assert not page.has_form("/optimisations/new")
    browser.open("/optimisations/new", status=422)
    browser.open("/optimisations/new?agent_playbook=1&user_playbook=2", status=422)
    browser.open("/optimisations/new?agent_playbook=99999999", status=404)


def test_a_run_that_waits_is_cancelled(browser: PageBrowser, write: Write) -> None:
    job = PlaybookOptimizationJob(target_kind="agent_playbook", target_id=9, status="running", incumbent_content=RULE)
    added = write(lambda tx: tx.optimisations.add(job.changed(created_at=now(), updated_at=now())))
    assert isinstance(added, PlaybookOptimizationJob)
    path = f"/optimisations/{added.job_id}"
    page = browser.open(path)
    assert "This run goes on" in page.text
    assert "Cancelled; nothing was changed" in browser.send(page.form(f"{path}/cancel")).text
    assert not browser.open(path).has_form(f"{path}/cancel")
    assert RULE in browser.open("/optimisations").text


@pytest.mark.parametrize("path", ["/optimisations/0", "/optimisations/x", "/optimisations/99999999999999999999"])
def test_runs_that_are_not_there(browser: PageBrowser, path: str) -> None:
    browser.open(path, status=404)


def test_a_place_in_the_list_that_makes_no_sense_is_refused(browser: PageBrowser) -> None:
    browser.open("/optimisations?cursor=nonsense", status=422)


# --- playground, versions and status


def test_the_playground_shows_a_rule_to_another_user_once_it_is_approved(
    client: ReflexioClient, browser: PageBrowser
) -> None:
    playbook = {"content": RULE, "trigger": "a parcel is marked delivered but is not there", "agent_version": "v1"}
    client.add_agent_playbooks([playbook])
    asked = "/playground?message=My+parcel+is+marked+delivered+but+not+here&user=bo&version=v1"
    assert RULE not in browser.open(asked).text
    assert f"{RULE}" in browser.open(f"{asked}&pending=yes").text
    browser.send(browser.open("/review").form("/review/decide"), decision="approve")
    page = browser.open(asked)
    assert RULE in page.text.partition("What the agent is told")[2].partition("Why each line")[0]
    assert RULE in browser.open("/playground?message=parcel+marked+delivered&version=v1").text


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("message=" + "x" * 5000, 422, "at most 4,000"),
        ("message=hi&tokens=-5", 200, "of 1,000"),
        ("message=hi&tokens=99999999", 200, "of 100,000"),
        ("message=hi&user=" + "u" * 300, 422, "user id"),
        ("message=%3Cscript%3Ealert(1)%3C/script%3E&user=%22%3E%3Cb%3E", 200, "&lt;script&gt;"),
        ("message=%00&version=%F0%9F%90%99", 200, ""),
    ],
)
def test_odd_questions_to_the_playground(browser: PageBrowser, query: str, status: int, words: str) -> None:
    page = browser.open(f"/playground?{query}", status=status)
    assert words in page.text
    assert "<script>alert" not in page.text


def test_versions_are_compared_for_the_period_and_type_that_was_asked(
    client: ReflexioClient, browser: PageBrowser
) -> None:
    assert "No version yet" in browser.open("/versions").text
    client.publish_interaction("ann", turns(), agent_version="v1")
    assert "One version only" in browser.open("/versions").text
    client.publish_interaction("bo", turns(), agent_version="v2")
    page = browser.open("/versions?days=7&type=playbook")
    assert '<option value="7" selected>' in page.text
    assert page.text.count('<th scope="row">Requests') == 2
    assert browser.open("/versions?days=-3&first=%3Cb%3E&second=v2").text.count("<b>") == 0


def test_the_status_says_what_to_do(browser: PageBrowser, write: Write) -> None:
    assert "Everything works" in browser.open("/status").text
    write(lambda tx: tx.stalls.put(Stall("billing_error", "No money left.", now())))
    page = browser.open("/status")
    assert "1 part needs your attention" in page.text
    assert "No money left." in page.text
    assert "learning resumes by itself" in page.text
    assert '<a href="/operations">Open the operations</a>' in page.text


def test_pages_need_a_key_where_there_are_keys(server: Running) -> None:
    for path in ("/review", "/playground", "/optimisations", "/versions", "/operations", "/settings", "/settings/keys"):
        answer = httpx.get(f"{server.url}{path}", headers=BROWSER)
        assert (answer.status_code, answer.headers["location"]) == (
            303,
            f"/sign-in?next=%2F{path[1:].replace('/', '%2F')}",
        )


def test_a_search_for_better_wording_starts_from_the_playbook(client: ReflexioClient, browser: PageBrowser) -> None:
    (number,) = client.add_agent_playbooks([{"content": RULE}]).ids
    path = f"/optimisations/new?agent_playbook={number}"
    assert f'href="{path}"' in browser.open(f"/learnings/{number}").text
    assert f'href="{path}"' in browser.open(f"/review?playbook={number}").text
    browser.send(browser.open("/review").form("/review/decide"), decision="approve")
    assert path not in browser.open(f"/learnings/{number}").text
