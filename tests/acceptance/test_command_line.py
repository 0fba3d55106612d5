"""The commands that read and change what is stored, on a real server."""

import io
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from reflexio.cli import exit_codes, options, output
from reflexio.cli.app import app
from reflexio.client.sync import ReflexioClient
from tests.conftest import Org

HIDDEN = "red\x1b[31m \u202etxet \U000e0041end"


@pytest.fixture(autouse=True)
def _at_the_server(org: Org, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLEXIO_URL", org.url)
    monkeypatch.setenv("REFLEXIO_API_KEY", org.token)


def command(*words: object, typed: str = "", code: int = 0) -> str:
    done = CliRunner().invoke(app, [*map(str, words)], input=typed)
    assert done.exit_code == code, f"{done.output} {done.exception!r}"
    return done.stdout


def as_json(*words: object, typed: str = "") -> Any:
    return json.loads(command(*words, "--json", typed=typed))


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


Process = Callable[..., Ended]


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Process:
    """Runs the command as the program does, with its exit code and its errors."""

    def run(*words: str, typed: str = "", **environment: str) -> Ended:
        with monkeypatch.context() as changed:
            changed.setattr(sys, "argv", ["reflexio", *words])
            changed.setattr(sys, "stdin", io.StringIO(typed))
            for name, value in environment.items():
                changed.setenv(name, value)
            capsys.readouterr()
            return Ended(exit_codes.run(app), *capsys.readouterr())

    return run


def teach(client: ReflexioClient) -> tuple[str, int, int]:
    """A profile, a user playbook and a pending agent playbook."""
    profile = client.add_user_profile([{"user_id": "ann", "content": "Lives in Oslo."}]).ids[0]
    taught = {"user_id": "ann", "agent_version": "v1", "trigger": "A parcel is late", "content": "Say when it comes."}
    mine = client.add_user_playbook([taught]).ids[0]
    everybody = client.add_agent_playbooks([{"agent_version": "v1", "content": "Be brief."}]).ids[0]
    return profile, int(mine), int(everybody)


# Publish


def test_turns_are_published_from_the_command_line_and_learned(client: ReflexioClient) -> None:
    said = command("publish", "--user", "ann", "--wait", "User: I am allergic to nuts.", "Agent: Noted.")
    assert "2 turns" in said
    assert "1 new profile" in said
    turns = client.get_interactions("ann").interactions[::-1]
    assert [(turn.role, turn.content) for turn in turns] == [
        ("User", "I am allergic to nuts."),
        ("Agent", "Noted."),
    ]


def test_a_word_in_front_that_is_no_role_belongs_to_the_turn(client: ReflexioClient) -> None:
    command("publish", "--user", "ann", "Note: the lamp is broken", "Assistant: Sorry: I see")
    turns = client.get_interactions("ann").interactions[::-1]
    assert [(turn.role, turn.content) for turn in turns] == [
        ("User", "Note: the lamp is broken"),
        ("Agent", "Sorry: I see"),
    ]


def test_json_lines_are_publishes_or_turns(client: ReflexioClient, tmp_path: Path) -> None:
    whole = {"user_id": "bob", "session_id": "s-1", "interaction_data_list": [{"role": "User", "content": "One"}]}
    lines = [json.dumps(whole), "", '{"role": "User", "content": "Two"}', "Agent: Three"]
    file = tmp_path / "talk.jsonl"
    file.write_text("\ufeff" + "\n".join(lines))
    published = command("publish", "--file", file, "--user", "ann", "--session", "s-2", "--json")
    responses = [json.loads(line) for line in published.splitlines()]
    assert [response["session_id"] for response in responses] == ["s-1", "s-2"]
    assert [turn.content for turn in client.get_interactions("bob").interactions] == ["One"]
    assert [turn.content for turn in client.get_interactions("ann").interactions] == ["Three", "Two"]


def test_standard_input_is_read_when_no_turn_is_given(client: ReflexioClient) -> None:
    command("publish", "--user", "ann", typed="User: Hello\nAgent: Hi\n")
    assert [turn.content for turn in client.get_interactions("ann").interactions] == ["Hi", "Hello"]


def test_a_broken_line_says_what_is_stored_and_how_to_go_on(client: ReflexioClient, process: Process) -> None:
    good = json.dumps({"user_id": "ann", "interactions": [{"content": "One"}]})
    for broken, words in (
        ("{oops", "Line 2 is not JSON"),
        ('{"interactions": [{"content": "x"}]}', 'Line 2 has no "user_id"'),
        ('{"user_id": "ann", "interactions": [{"content": "x"}], "colour": 1}', "colour"),
        ('{"user_id": "ann", "interactions": []}', "interaction"),
    ):
        done = process("publish", typed=f"{good}\n{broken}\n")
        assert done.returncode == 1
        assert words in done.stderr
        assert "--from-line 2" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert len(client.get_interactions("ann").interactions) == 4
    assert process("publish", "--from-line", "2", typed=f"{{oops\n{good}\n").returncode == 0


# Read


def test_lists_in_a_pipe_have_a_row_a_line_uncut_and_json_has_the_fields_of_the_api(client: ReflexioClient) -> None:
    profile, mine, everybody = teach(client)
    long = client.add_user_profile([{"user_id": "ann", "content": "word " * 390}]).ids[0]
    rows = [line.split("\t") for line in command("profiles", "list", "--user", "ann").splitlines()]
    assert {row[0]: row[5] for row in rows} == {profile: "Lives in Oslo.", long: ("word " * 390).strip()}
    assert as_json("profiles", "list", "--user", "nobody") == {"user_profiles": [], "has_more": False}
    (row,) = as_json("profiles", "list", "--limit", 1)["user_profiles"]
    assert row["profile_id"] == long
    rows = [line.split("\t") for line in command("playbooks", "list").splitlines()]
    assert [row[:4] for row in rows] == [
        [str(everybody), "agent", "pending", "v1"],
        [str(mine), "ann", "current", "v1"],
    ]
    assert [row["user_playbook_id"] for row in as_json("playbooks", "list", "--kind", "user")["user_playbooks"]] == [
        mine
    ]
    assert as_json("playbooks", "list", "--user", "ann")["agent_playbooks"] == []


def test_a_list_goes_on_over_all_pages(client: ReflexioClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "PAGE", 3)
    client.add_user_profile([{"user_id": "ann", "content": f"Fact {number}"} for number in range(8)])
    assert len(command("profiles", "list", "--all").splitlines()) == 8
    assert len(command("profiles", "list", "--limit", 5).splitlines()) == 5
    assert as_json("profiles", "list", "--limit", 5)["has_more"] is True


def test_conversations_are_listed_by_session_and_shown_whole(client: ReflexioClient) -> None:
    for content in ("First", "Second"):
        client.publish_interaction("ann", [{"content": content}], session_id="talk", agent_version="v1")
    (line,) = command("interactions", "list").splitlines()
    assert line.split("\t")[0::3] == ["talk", "2"]
    assert line.endswith("First")
    shown = command("interactions", "show", "talk")
    assert shown.index("User: First") < shown.index("User: Second")
    request = as_json("interactions", "show", "talk")["sessions"][0]["requests"][0]["request"]["request_id"]
    assert "First" in command("interactions", "show", request)


def test_search_and_context_print_what_a_prompt_would_get(client: ReflexioClient) -> None:
    teach(client)
    assert "ann\tA parcel is late: Say when it comes." in command("search", "My parcel is late", "--user", "ann")
    text = command("context", "My parcel is late", "--user", "ann")
    assert text.startswith("<learned>")
    assert "Say when it comes." in text
    assert as_json("context", "My parcel is late", "--user", "ann")["items"]
    client.publish_interaction("ann", [{"content": "The kettle leaks"}])
    assert "The kettle leaks" in command("search", "", "--user", "ann", "--turns")


def test_show_says_where_a_learning_comes_from(client: ReflexioClient) -> None:
    client.publish_interaction("ann", [{"content": "I am allergic to nuts."}], wait_for_response=True)
    (profile,) = client.get_profiles("ann").user_profiles
    shown = command("profiles", "show", profile.profile_id)
    assert '"I am allergic to nuts."' in shown
    _, mine, everybody = teach(client)
    assert "A parcel is late" in command("playbooks", "show", mine)
    assert as_json("playbooks", "show", everybody)["agent_playbook"]["content"] == "Be brief."


# Change


def test_learnings_are_edited_and_deleted(client: ReflexioClient) -> None:
    profile, mine, everybody = teach(client)
    command("profiles", "edit", profile, "--content", "Lives in Bergen.")
    command("playbooks", "edit", mine, "--trigger", "A parcel is very late", "--scope", "always")
    command("playbooks", "edit", everybody, "--content", "Be very brief.")
    assert client.get_profiles("ann", force_refresh=True).user_profiles[0].content == "Lives in Bergen."
    (playbook,) = client.get_user_playbooks().user_playbooks
    assert (playbook.trigger, playbook.scope.value) == ("A parcel is very late", "always")
    assert client.get_agent_playbooks(force_refresh=True).agent_playbooks[0].content == "Be very brief."
    command("profiles", "delete", profile, "--yes")
    command("playbooks", "delete", mine, everybody, "--yes")
    assert command("profiles", "list") == command("playbooks", "list") == ""


def test_nothing_is_deleted_without_a_yes(client: ReflexioClient, monkeypatch: pytest.MonkeyPatch) -> None:
    profile, *_ = teach(client)
    command("profiles", "delete", profile, code=2)
    monkeypatch.setattr(options, "is_terminal", lambda: True)
    command("profiles", "delete", profile, typed="n\n", code=1)
    assert client.get_profiles("ann", force_refresh=True).user_profiles
    command("profiles", "delete", profile, typed="y\n")
    assert not client.get_profiles("ann", force_refresh=True).user_profiles


def test_conversations_and_users_are_deleted(client: ReflexioClient, tmp_path: Path) -> None:
    for session in ("one", "two"):
        client.publish_interaction("ann", [{"content": "Hello"}], session_id=session)
    command("interactions", "delete", "--session", "one", "--yes")
    assert command("interactions", "list").split("\t")[0] == "two"
    receipt = tmp_path / "receipt.json"
    command("erasure", "run", "ann", "--receipt", receipt, "--yes")
    assert command("interactions", "list") == ""
    assert receipt.stat().st_mode & 0o777 == 0o600
    assert "digest" in json.loads(receipt.read_text())


# Learning


def test_aggregation_rerun_upgrade_and_downgrade(client: ReflexioClient) -> None:
    for user in ("ann", "bob"):
        rule = {
            "user_id": user,
            "agent_version": "v1",
            "trigger": "A parcel is late",
            "content": "Ask for the order number.",
        }
        client.add_user_playbook([rule])
    assert "generated 1 agent playbooks" in command("aggregate", "--agent-version", "v1")
    client.publish_interaction("ann", [{"content": "I am allergic to nuts."}], wait_for_response=True)
    assert "completed, 1 user of 1" in command("rerun", "profiles", "--user", "ann")
    assert "completed" in command("rerun", "status")
    assert "Promoted 1" in command("upgrade", "profiles", "--user", "ann")
    assert "Restored 1" in command("downgrade", "profiles", "--user", "ann")
    command("upgrade", "playbooks", code=1)
    command("rerun", "profiles", "--user", "nobody", code=1)


def test_a_stall_is_shown_with_exit_code_1_when_there_is_one() -> None:
    assert "Learning goes on" in command("stall")
    assert as_json("stall") == {"stalled": False, "notified_in_cc": False}


# Configuration


def test_settings_are_shown_set_and_compared(client: ReflexioClient, process: Process, tmp_path: Path) -> None:
    assert command("config", "diff") == ""
    file = tmp_path / "before.json"
    file.write_text(command("config", "show", "--json"))
    command("config", "set", "window_size=20", "playbook_configs.0.playbook_name=style")
    assert command("config", "show", "window_size") == "20\n"
    assert client.get_config().playbook_configs[0].playbook_name == "style"
    differences = {each["setting"]: each["to"] for each in as_json("config", "diff", file)}
    assert differences["window_size"] == 20
    assert "stride_size" not in differences
    for wrong in ("window_size=0", "window_sise=5", "window_size", "window_size.below=1"):
        assert process("config", "set", wrong).returncode != 0
    assert client.get_config().window_size == 20


def test_an_editor_changes_settings_and_may_correct_what_is_refused(
    client: ReflexioClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    editor = tmp_path / "editor"
    smaller = 's/"window_size": [^,]*/"window_size": \'$size\'/; s/"stride_size": [^,]*/"stride_size": 5/'
    again = f"if [ -e {tmp_path}/again ]; then size=7; else size=-7; touch {tmp_path}/again; fi"
    editor.write_text(f"#!/bin/sh\n{again}\nsed -i '{smaller}' \"$1\"\n")
    editor.chmod(0o700)
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.setattr("reflexio.cli.config.is_terminal", lambda: True)
    command("config", "edit", typed="y\n")
    assert client.get_config().window_size == 7


# How commands end


def test_exit_codes_and_errors_in_one_line(org: Org, process: Process) -> None:
    ends = [
        (process("search", "x", "--url", "http://127.0.0.1:9"), 3, "start one with `reflexio serve`"),
        (process("search", "x", REFLEXIO_API_KEY="wrong"), 4, "keys create"),
        (process("profiles", "show", "nobody"), 1, "There is no profile 'nobody'"),
        (process("profiles", "lisst"), 2, "reflexio profiles --help"),
        (process("search"), 2, "reflexio search --help"),
        (process("profiles", "list", "--limit", "0"), 2, "--limit"),
        (process("profiles", "list", "--status", "odd"), 2, "current"),
        (process("publish", "--file", "/nowhere/at/all", "--user", "ann"), 1, "No such file"),
        (process("review", "--url", org.url, "list"), 2, "behind the command"),
    ]
    for done, code, words in ends:
        assert done.returncode == code, done.stderr
        assert words in done.stderr
        assert done.stdout == ""
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert done.stderr.startswith("reflexio: ")


def test_characters_that_steer_a_terminal_never_reach_it(client: ReflexioClient) -> None:
    client.publish_interaction("ann", [{"role": "User", "content": HIDDEN}], session_id="talk")
    client.publish_interaction("b\u202eob", [{"role": HIDDEN, "content": "hello"}], session_id="other\u202e")
    for words in (
        ("interactions", "list"),
        ("interactions", "list", "--json"),
        ("interactions", "show", "talk"),
        ("interactions", "show", "other\u202e"),
        ("search", "", "--user", "ann", "--turns"),
    ):
        shown = command(*words)
        assert shown
        assert not {"\x1b", "\u202e", "\U000e0041"} & set(shown), words


def test_help_loads_nothing_heavy_and_every_command_has_an_example() -> None:
    program = "import sys; from reflexio.cli.app import app; print([m for m in sys.modules if m.split('.')[0] in %r])"
    heavy = ("numpy", "sqlalchemy", "pydantic", "httpx", "fastapi", "rich")
    done = subprocess.run([sys.executable, "-c", program % (heavy,)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    import typer.main

    def leaves(found: Any, name: str) -> list[tuple[str, Any]]:
        below = getattr(found, "commands", {})
        return [leaf for word, sub in below.items() for leaf in leaves(sub, f"{name} {word}")] or [(name, found)]

    for name, leaf in leaves(typer.main.get_command(app), "reflexio"):
        assert leaf.help, name
        assert (leaf.epilog or "").startswith("Example: "), name
        assert name in leaf.epilog, name


def test_completion_knows_the_commands(process: Process) -> None:
    done = process(_REFLEXIO_COMPLETE="complete_bash", COMP_WORDS="reflexio pro", COMP_CWORD="1")
    assert done.stdout.split() == ["profiles"]
