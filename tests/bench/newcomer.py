"""What a newcomer's agent gets back: conversations on a real server without a model, and questions in other words.

Each set has thirty conversations of twelve users in five languages, published turn by turn. A reviewer approves the
rules for everybody. Then twenty-six follow-ups ask for a context in a new session: the rule or fact that they need
should be in it, and no rule for another matter. `python -m tests.bench.newcomer [set …]` also shows each context.
"""

import re
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reflexio import ReflexioClient
from reflexio.models.search import ContextResponse
from reflexio.server.process import running_server
from tests.bench.report import Figure

FOLDER = Path(__file__).parent / "conversations"
SETS = ("groceries", "concierge", "broadband")
AGENT_VERSION = "assistant-1"
WANTED = 23
PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Answered:
    """A follow-up, the context that it got, and how far that is what was needed."""

    user: str
    asks: str
    context: ContextResponse
    is_reached: bool
    unrelated: tuple[str, ...]

    @property
    def relevant(self) -> int:
        return sum(item.layer == "relevant" for item in self.context.items)


def newcomer() -> list[Figure]:
    return [*(figure for name in SETS for figure in _figures(name, follow_up(name))), *_everyday_figures(everyday())]


def follow_up(name: str) -> list[Answered]:
    """Publishes a set's conversations, reviews, and asks its follow-ups."""
    conversations = _read(name)
    with _client() as client:
        for number, conversation in enumerate(conversations["conversations"]):
            turns = [_turn(turn) for turn in conversation["turns"]]
            _publish(client, conversation["user"], turns, session=f"{name}-{number}")
        _review(client, conversations["rules"])
        return [_ask(client, case, conversations["situations"]) for case in conversations["follow_ups"]]


def everyday() -> list[Answered]:
    """Each user says one thing, and later sends five everyday messages."""
    users = _read("everyday")["users"]
    with _client() as client:
        for number, user in enumerate(users):
            _publish(
                client, f"user-{number}", [_turn(f"User: {user['says']}"), _turn("Agent: Noted.")], f"day-{number}"
            )
        return [
            _ask(client, {"user": f"user-{number}", "asks": asks, "needs": user["needs"]}, {})
            for number, user in enumerate(users)
            for asks in user["asks"]
        ]


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


@contextmanager
def _client() -> Iterator[ReflexioClient]:
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(Path(folder)) as url,
        ReflexioClient(url_endpoint=url) as client,
    ):
        yield client


def _turn(turn: str | dict[str, Any]) -> dict[str, Any]:
    if isinstance(turn, dict):
        return turn
    role, _, content = turn.partition(": ")
    return {"role": role, "content": content}


def _publish(client: ReflexioClient, user: str, turns: list[dict[str, Any]], session: str) -> None:
    """One publish a turn, as an agent does while it talks; then waits until the session is learned from."""
    options: dict[str, Any] = {"session_id": session, "agent_version": AGENT_VERSION}
    for turn in turns[:-1]:
        client.publish_interaction(user, [turn], **options)
    last = client.publish_interaction(user, turns[-1:], session_finished=True, **options)
    deadline = time.monotonic() + PATIENCE
    while (status := client.get_learning_status(str(last.request_id))) != "done":
        assert status != "failed", f"learning from {session} failed"
        assert time.monotonic() < deadline, f"{session} was not learned from"
        time.sleep(0.02)


def _review(client: ReflexioClient, rules: dict[str, str]) -> None:
    """Approves the rules that the set expects, and rejects everything else."""
    client.run_playbook_aggregation(agent_version=AGENT_VERSION, wait_for_response=True)
    for item in client.get_review_queue(agent_version=AGENT_VERSION).items:
        playbook = item.agent_playbook
        text = f"{playbook.trigger} {playbook.content}"
        status = "approved" if any(re.search(rule, text) for rule in rules.values()) else "rejected"
        client.review_agent_playbooks([playbook.agent_playbook_id], playbook_status=status, reviewer="bench")


def _ask(client: ReflexioClient, case: dict[str, Any], situations: dict[str, str]) -> Answered:
    context = client.get_context(case["asks"], user_id=case["user"], agent_version=AGENT_VERSION)
    lines = [line for line in context.context.splitlines() if line.startswith("- ")]
    stale = case.get("stale")
    is_reached = any(re.search(case["needs"], line) for line in lines)
    is_reached &= not (stale and any(re.search(stale, line) for line in lines))
    others = [pattern for matter, pattern in situations.items() if matter not in case.get("matters", ())]
    unrelated = [
        line
        for line in lines
        if any(re.search(pattern, line) for pattern in others) and not re.search(case["needs"], line)
    ]
    return Answered(case["user"], case["asks"], context, is_reached, tuple(unrelated))


def _figures(name: str, answered: list[Answered]) -> list[Figure]:
    for case in answered:
        if not case.is_reached:
            print(f"{name}: missing for {case.user}: {case.asks}")
    reached = sum(case.is_reached for case in answered)
    relevant = sum(case.relevant for case in answered) / len(answered)
    return [
        Figure(f"{name}: follow-ups of {len(answered)} with what they need", reached, "", WANTED, more_is_better=True),
        Figure(f"{name}: contexts with something unrelated", sum(bool(case.unrelated) for case in answered), "", 1),
        Figure(f"{name}: items a context beyond the always layer", relevant, "", 1.6),
    ]


def _everyday_figures(answered: list[Answered]) -> list[Figure]:
    reached = sum(case.is_reached for case in answered)
    name = f"everyday: contexts of {len(answered)} with the user's standing rule or fact"
    return [Figure(name, reached, "", 36, more_is_better=True, baseline="0")]


def _show(name: str, answered: list[Answered]) -> None:
    for case in answered:
        mark = "reached" if case.is_reached else "MISSING"
        print(f"\n[{name}] {mark} {case.user}: {case.asks}")
        print(case.context.context or "(empty)")
        for line in case.unrelated:
            print(f"unrelated: {line}")


def main(wanted: list[str]) -> None:
    for name in wanted or [*SETS, "everyday"]:
        answered = everyday() if name == "everyday" else follow_up(name)
        _show(name, answered)
        for figure in _everyday_figures(answered) if name == "everyday" else _figures(name, answered):
            print(f"{figure.name}: {figure.value:.3g}")


if __name__ == "__main__":
    main(sys.argv[1:])
