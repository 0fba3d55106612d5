"""An organisation goes into one file and out of it again, on a real server where its numbers are taken."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from reflexio.cli.app import app
from reflexio.client.sync import ReflexioClient
from reflexio.errors import InvalidRequest
from tests.conftest import Org

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def fill(client: ReflexioClient) -> None:
    """Conversations, everything that is learned from them, reviews, edits, outcomes, a rerun and settings."""
    client.set_config({"agent_context_prompt": "A shop", "api_key_config": {"openai": {"api_key": "sk-very-secret"}}})
    for user in ("ann", "bob", "cem"):
        said: list[dict[str, Any]] = [
            {"role": "User", "content": "I am allergic to nuts."},
            {"role": "Agent", "content": "Noted.", "image_encoding": PIXEL},
            {"role": "User", "content": "Always ask for the order number first.", "tools_used": [{"tool_name": "t"}]},
        ]
        client.publish_interaction(user, said, agent_version="v1", session_id=f"{user}-1", wait_for_response=True)
    client.run_playbook_aggregation("v1", wait_for_response=True)
    (rule,) = client.get_agent_playbooks(force_refresh=True).agent_playbooks
    number = rule.agent_playbook_id
    client.update_agent_playbook(number, content="Ask for it at once.", reviewer="eve", playbook_status="approved")
    client.record_outcome("helped", agent_playbook_ids=[number])
    shown = {
        "role": "Agent",
        "content": "Hm.",
        "retrieved_learnings": [{"kind": "agent_playbook", "learning_id": number}],
    }
    client.publish_interaction("ann", [{"content": "Hello"}, shown], agent_version="v1", evaluation_only=True)
    client.add_agent_playbooks([{"content": "Be brief.", "agent_version": "v1", "playbook_status": "rejected"}])
    twin = {"user_id": "dan", "content": "Say it twice.", "agent_version": "v1", "created_at": 1_700_000_000}
    client.add_user_playbook([twin, twin])
    client.rerun_profile_generation("ann", wait_for_response=True)


@pytest.fixture
def filled(client: ReflexioClient) -> list[str]:
    fill(client)
    return list(client.export_organisation())


@pytest.fixture
def other(make_org: Callable[[], Org]) -> Org:
    return make_org()


def rows(lines: list[str], kind: str) -> list[dict[str, Any]]:
    return [row for row in map(json.loads, lines) if row["type"] == kind]


def test_an_export_that_was_imported_elsewhere_is_exported_as_the_same_bytes(filled: list[str], other: Org) -> None:
    with other.client() as client:
        report = client.import_organisation(filled)
        assert report.is_complete
        assert {part: count.added for part, count in report.counts.items()} == {
            "learnings": len(rows(filled, "learning")),
            "requests": len(rows(filled, "request")),
            "links": len(rows(filled, "links")),
            "pools": 1,
        }
        assert list(client.export_organisation()) == filled


def test_the_file_has_a_header_everything_and_no_secret(filled: list[str]) -> None:
    header, end = json.loads(filled[0]), json.loads(filled[-1])
    assert (header["format"], header["version"]) == ("reflexio-export", 1)
    assert header["counts"] == end["counts"]
    assert end["counts"]["requests"] == 4
    text = "".join(filled)
    assert "sk-very-secret" not in text
    assert '"agent_context_prompt":"A shop"' in text
    assert PIXEL in text
    statuses = {(row["kind"], row["status"], row["review"]) for row in rows(filled, "learning")}
    assert {("profile", "pending", "pending"), ("agent_playbook", "current", "rejected")} <= statuses
    assert any(event["actor"] == "eve" for row in rows(filled, "links") for event in row["events"])


def test_an_import_can_be_repeated(filled: list[str], other: Org) -> None:
    with other.client() as there:
        there.import_organisation(filled)
        assert_nothing_new(there, filled)


def test_an_import_adds_nothing_to_where_it_comes_from(filled: list[str], client: ReflexioClient) -> None:
    assert_nothing_new(client, filled)


def assert_nothing_new(client: ReflexioClient, filled: list[str]) -> None:
    counts = client.import_organisation(filled).counts
    assert all(count.present for count in counts.values())
    assert all(count.added == count.refused == 0 for count in counts.values())
    assert list(client.export_organisation()) == filled


def test_what_was_imported_works(filled: list[str], client: ReflexioClient, other: Org) -> None:
    with other.client() as there:
        there.import_organisation(filled)
        hits = there.search_agent_playbooks("ask at once", agent_version="v1").agent_playbooks
        assert [hit.content for hit in hits] == ["Ask for it at once."]
        (rule,) = [each for each in there.get_agent_playbooks().agent_playbooks if each.support]
        (ours,) = [each for each in client.get_agent_playbooks(force_refresh=True).agent_playbooks if each.support]
        assert rule.agent_playbook_id != ours.agent_playbook_id
        provenance = there.get_provenance("agent_playbook", rule.agent_playbook_id)
        taught = {source.user_playbook.user_id for source in provenance.source_user_playbooks}
        assert taught == {"ann", "bob", "cem"}
        assert all(source.interactions for source in provenance.source_user_playbooks)
        turns = there.get_interactions("ann").interactions
        named = {each.learning_id for turn in turns for each in turn.retrieved_learnings}
        assert named == {str(rule.agent_playbook_id)}
        # Nothing is summarised a second time, and a decision can still be taken back.
        assert there.run_playbook_aggregation("v1", wait_for_response=True).playbooks_generated == 0
        there.undo_review([rule.agent_playbook_id])


def test_a_filled_organisation_keeps_its_own_and_its_edits(
    filled: list[str], client: ReflexioClient, other: Org
) -> None:
    with other.client() as there:
        there.add_user_profile([{"user_id": "ann", "content": "Likes tea."}])
        there.import_organisation(filled)
        (mine,) = there.get_user_playbooks(user_id="bob").user_playbooks
        there.update_user_playbook(mine.user_playbook_id, content="Ask politely.")
        report = there.import_organisation(filled)
        assert report.counts["learnings"].added == 0
        assert [each.content for each in there.get_user_playbooks(user_id="bob").user_playbooks] == ["Ask politely."]
        assert "Likes tea." in {each.content for each in there.get_profiles("ann").user_profiles}


def test_an_interrupted_import_is_finished_by_another(filled: list[str], other: Org) -> None:
    with other.client() as client:
        for share in (3, 2):
            assert not client.import_organisation(filled[: len(filled) * 2 // share // 2]).is_complete
        assert client.import_organisation(filled).is_complete
        assert list(client.export_organisation()) == filled


def test_what_an_organisation_redacts_is_redacted_in_an_import_too(other: Org, client: ReflexioClient) -> None:
    client.publish_interaction("ann", [{"content": "Write to ann@example.org"}])
    client.add_user_profile([{"user_id": "ann", "content": "Reads ann@example.org"}])
    lines = list(client.export_organisation())
    with other.client() as there:
        there.set_config({"redaction": ["email"]})
        there.import_organisation(lines)
        assert "ann@example.org" not in "".join(there.export_organisation())


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["{}"], "no export of Reflexio"),
        (['{"type":"header","format":"reflexio-export","version":2}'], "format version 2"),
        (["nonsense"], "Line 1 is not JSON"),
        (['{"type":"header","format":"reflexio-export","version":1}', '{"type":"moon"}'], "unknown type 'moon'"),
        (['{"type":"header","format":"reflexio-export","version":1}', '{"type":"links"}'], "Line 2"),
        (['{"type":"header","format":"reflexio-export","version":1}', '{"type":"learning"}'], "content"),
        (['{"type":"header","format":"reflexio-export","version":1}', '{"type":"request","turns":1}'], "Line 2"),
    ],
)
def test_what_is_no_export_is_refused_with_the_line(client: ReflexioClient, lines: list[str], words: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        client.import_organisation(lines)
    assert words in str(refused.value) + str(refused.value.errors)


def test_a_reference_to_rows_of_others_leads_nowhere(filled: list[str], client: ReflexioClient, other: Org) -> None:
    theirs = client.get_user_playbooks().user_playbooks[0].user_playbook_id
    with other.http() as http:
        links = {"learning": theirs, "details": {"replaces": [theirs]}, "events": [{"op": "learned", "at": 1}]}
        response = http.post("/api/import_rows", json={"links": [links]}).json()
        assert response["links"][0]["reason"]
    assert list(client.export_organisation()) == filled


# The command line


def command(org: Org, monkeypatch: pytest.MonkeyPatch, *words: object, typed: bytes = b"", code: int = 0) -> str:
    monkeypatch.setenv("REFLEXIO_API_KEY", org.token)
    done = CliRunner().invoke(app, [*map(str, words), "--url", org.url], input=typed)
    assert done.exit_code == code, done.output
    return done.stdout


def test_the_commands_write_private_files_compressed_or_not_and_read_both(
    client: ReflexioClient, org: Org, other: Org, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    client.publish_interaction("ann", [{"content": "Grüße"}])
    plain, packed = tmp_path / "org.jsonl", tmp_path / "org.jsonl.gz"
    for file in (plain, packed):
        command(org, monkeypatch, "export", file)
        assert file.stat().st_mode & 0o777 == 0o600
    assert (
        gzip.decompress(packed.read_bytes()) == plain.read_bytes() == command(org, monkeypatch, "export", "-").encode()
    )
    command(org, monkeypatch, "export", plain, code=1)
    command(org, monkeypatch, "export", plain, "--force")
    report = json.loads(command(other, monkeypatch, "import", packed, "--json"))
    assert report["counts"]["requests"] == {"added": 1, "present": 0, "refused": 0}
    assert "0 added, 1 present" in command(other, monkeypatch, "import", "-", typed=plain.read_bytes())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["org.jsonl", "org.jsonl.gz"]


def test_a_file_that_was_cut_off_is_an_error_that_says_so(
    client: ReflexioClient, org: Org, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "cut.jsonl"
    file.write_text("".join(list(client.export_organisation())[:-1]))
    command(org, monkeypatch, "import", file, code=1)


# Other systems, and skills


def test_memories_of_mem0_become_profiles_once(
    client: ReflexioClient, org: Org, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    memories = [
        {"id": "1", "memory": "Is vegetarian", "user_id": "amira", "created_at": "2026-03-01T10:00:00Z"},
        {"id": "2", "memory": "The invoice of March was wrong", "user_id": "amira", "metadata": {"by": "mail"}},
        {"id": "3", "memory": "Of nobody"},
    ]
    file = tmp_path / "mem0.json"
    file.write_text(json.dumps({"results": memories}))
    for added, present in ((2, 0), (0, 2)):
        report = json.loads(command(org, monkeypatch, "import", file, "--json"))
        assert report["counts"]["learnings"] == {"added": added, "present": present, "refused": 0}
    profiles = {row.content: row for row in client.get_profiles("amira", force_refresh=True).user_profiles}
    assert profiles["Is vegetarian"].last_modified_timestamp == 1772359200
    assert profiles["Is vegetarian"].scope == "always"
    assert profiles["The invoice of March was wrong"].scope == "when_relevant"
    assert profiles["The invoice of March was wrong"].custom_features == {"by": "mail"}


def test_threads_of_zep_are_learned_from(
    client: ReflexioClient, org: Org, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "zep.json"
    messages = [{"role": "user", "content": "I am allergic to nuts.", "created_at": "2026-03-01T10:00:00Z"}]
    facts = [{"uuid": "e1", "fact": "Amira lives in Lisbon", "created_at": "2026-03-01T10:00:00Z"}]
    file.write_text(json.dumps({"thread_id": "t", "messages": messages, "facts": facts}))
    for _ in range(2):
        command(org, monkeypatch, "import", file, "--user", "amira")
    (turn,) = client.get_interactions("amira").interactions
    assert turn.content == "I am allergic to nuts."
    client.manual_profile_generation("amira")
    client.flush()
    contents = {row.content for row in client.get_profiles("amira", force_refresh=True).user_profiles}
    assert contents == {"Amira lives in Lisbon", "The user is allergic to nuts."}


def test_what_nobody_exported_is_refused(
    client: ReflexioClient, org: Org, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "odd.json"
    file.write_text('{"name": "package"}')
    command(org, monkeypatch, "import", file, code=1)
    command(org, monkeypatch, "import", file, "--from", "letta", code=2)


def test_approved_playbooks_leave_as_skills_and_come_in_as_pending(
    client: ReflexioClient, org: Org, other: Org, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rules = [
        {"agent_version": "v1", "trigger": "A parcel is late", "content": "Ask first.", "playbook_status": "approved"},
        {"agent_version": "v1", "content": "Be brief.", "playbook_status": "approved", "scope": "always"},
        {"agent_version": "v1", "content": "Not yet."},
    ]
    client.add_agent_playbooks(rules)
    assert "2 playbooks" in command(org, monkeypatch, "skills", "export", tmp_path)
    assert "Not yet." not in (tmp_path / "playbook-v1" / "SKILL.md").read_text()
    foreign = tmp_path / "tidy" / "SKILL.md"
    foreign.parent.mkdir()
    foreign.write_text("---\nname: tidy\ndescription: Tidy a folder\n---\nSort by date.")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "SKILL.md").write_text("no front matter")
    for added, present in ((3, 0), (0, 3)):
        report = json.loads(command(other, monkeypatch, "skills", "import", tmp_path, "--json", code=1))
        assert (report["added"], report["present"], len(report["refused"])) == (added, present, 1)
    with other.client() as there:
        rows = there.get_agent_playbooks().agent_playbooks
        assert {row.playbook_status.value for row in rows} == {"pending"}
        assert {(row.agent_version, row.trigger, row.content, row.scope.value) for row in rows} == {
            ("v1", "A parcel is late", "Ask first.", "when_relevant"),
            ("v1", None, "Be brief.", "always"),
            ("agent-v0", "Tidy a folder", "Sort by date.", "when_relevant"),
        }
        assert not there.get_context("Where is my late parcel?", agent_version="v1").context
    command(org, monkeypatch, "skills", "import", tmp_path / "playbook-v1")
    command(org, monkeypatch, "skills", "export", tmp_path)


def test_a_skill_of_somebody_else_is_never_overwritten(
    client: ReflexioClient, org: Org, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    client.add_agent_playbooks([{"agent_version": "v1", "content": "Be brief.", "playbook_status": "approved"}])
    mine = tmp_path / "playbook-v1" / "SKILL.md"
    mine.parent.mkdir()
    mine.write_text("my own")
    command(org, monkeypatch, "skills", "export", tmp_path, code=1)
    assert mine.read_text() == "my own"
