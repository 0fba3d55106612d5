"""The server dies at every commit and at both ends of every step. Whoever repeats what was not answered has it once.

The moments of one run are a sample; REFLEXIO_FAULT_SEED chooses another one, and `all` takes every moment.
"""

import os
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from reflexio.client.sync import ReflexioClient
from reflexio.models.playbook import AgentPlaybook
from tests.acceptance.faults.faulty import FaultyServer, Launcher, broken_findings
from tests.builders import eventually, every_turn, turns
from tests.scripted_model import Answer, Asked, ScriptedModel, scripted_model

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("faults")]

SEED = os.environ.get("REFLEXIO_FAULT_SEED", "17")
SAMPLE = 8
USERS = ("ann", "bob", "cat")
GONE = "dan"
COMPLAINT = "Ask the neighbours first when a parcel is missing."
RULE = "Ask the neighbours before you open a case."


@dataclass
class Model:
    """Finds a fact and a lesson in every window, and counts what it was asked."""

    asked: Counter[str] = field(default_factory=Counter)
    lock: Lock = field(default_factory=Lock)

    def __call__(self, asked: Asked) -> Answer:
        (kind,) = {"decisions", "rule", "profiles"} & asked.wants or {"word"}
        names = sorted(set(re.findall(r"marker-\w+", asked.case)))
        with self.lock:
            self.asked[f"{kind} {' '.join(names)}"] += 1
        match kind:
            case "decisions":
                return {"decisions": [{"note": note, "action": "add"} for note in (1, 2)]}
            case "rule":
                return {"rule": {"trigger": "A parcel is missing", "content": RULE, "rationale": "Many say so."}}
            case "word":
                return {"word": "yes"}
        heads = re.findall(r"turn (\d+), user[^\n]*\n([^\n]*(marker-\w+)[^\n]*)", asked.case)
        turn, line, name = heads[-1]
        proof = [{"turn": int(turn), "text": line.strip()}]
        fact = {"type": "profile", "content": f"The user is {name}", "evidence": proof}
        lesson = {"type": "playbook", "trigger": "A parcel is missing", "content": COMPLAINT, "evidence": proof}
        return {"profiles": [fact], "playbooks": [lesson]}


@dataclass(frozen=True)
class Outcome:
    """What a caller sees when all is done, and what the model was asked for it."""

    turns: list[str]
    learned: list[str]
    rules: list[tuple[str, str, int]]
    paid: int
    asked: Counter[str]


class Story:
    """What several users and an operator do. Each call is repeated until it is answered, as a caller would."""

    def __init__(self, server: FaultyServer, client: ReflexioClient) -> None:
        self.server = server
        self.client = client
        self.answered: dict[str, str] = {}

    def tell(self) -> None:
        for user in (*USERS, GONE):
            self.publish(user, wait_for_response=True)
        self.publish("eve", force_extraction=True)
        self.server.persist(lambda: self.client.get_profiles("eve", force_refresh=True))
        self.learned("eve")
        self.server.persist(lambda: self.client.clear_user_data(GONE))
        self.server.persist(lambda: self.client.run_playbook_aggregation(agent_version="v1", wait_for_response=True))
        self.approve()

    def publish(self, user: str, **how: Any) -> None:
        said = turns(f"I am marker-{user}. {COMPLAINT}", "I see.")
        key = f"key-{user}"
        answer = self.server.persist(
            lambda: self.client.publish_interaction(user, said, agent_version="v1", idempotency_key=key, **how)
        )
        assert answer.request_id
        self.answered[user] = answer.request_id

    def learned(self, user: str) -> None:
        eventually(lambda: len(self.rows(user)) == 2)

    def approve(self) -> None:
        # The operation that a dead server left may still go on behind a repeated call.
        eventually(lambda: bool(self.rules()))
        ids = [int(rule.agent_playbook_id) for rule in self.rules() if rule.playbook_status == "pending"]
        if ids:
            self.server.persist(
                lambda: self.client.review_agent_playbooks(ids, playbook_status="approved", reviewer="eve")
            )

    def rules(self) -> list[AgentPlaybook]:
        return self.server.persist(
            lambda: (
                self.client.get_agent_playbooks(
                    status_filter=["None"], playbook_status_filter=["pending", "approved"], force_refresh=True
                ).agent_playbooks
            )
        )

    def rows(self, user: str) -> list[str]:
        def read() -> list[str]:
            profiles = self.client.get_profiles(user, force_refresh=True).user_profiles
            playbooks = self.client.get_user_playbooks(user_id=user).user_playbooks
            return sorted([row.content for row in profiles] + [row.content for row in playbooks])

        return self.server.persist(read)

    def outcome(self, model: Model) -> Outcome:
        users = (*USERS, GONE, "eve")
        found = [turn for user in users for turn in every_turn(self.client, user)]
        for turn in found:
            assert self.answered[turn.user_id] == turn.request_id, "an answered publish is another one now"
        return Outcome(
            sorted(turn.content for turn in found),
            [f"{user}: {content}" for user in users for content in self.rows(user)],
            [(rule.content, str(rule.playbook_status), rule.support or 0) for rule in self.rules()],
            sum(usage.calls for usage in self.client.get_usage().usage),
            Counter(model.asked),
        )


@pytest.fixture(scope="module")
def served_model() -> Iterator[ScriptedModel]:
    with scripted_model(otherwise=Model()) as model:
        yield model


@pytest.fixture(scope="module")
def template(forks: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that was started once: its migrations are no moments to die at."""
    folder = tmp_path_factory.mktemp("faults") / "template"
    server = FaultyServer(forks, folder, {})
    server.start()
    server.end(15)
    return folder


@dataclass
class Stage:
    """Where the story is told, once for each moment."""

    forks: Launcher
    model: ScriptedModel
    template: Path

    def tell(self, folder: Path, boundary: int) -> tuple[Outcome, FaultyServer]:
        """The story with a server that dies at one boundary; 0 is never."""
        shutil.copytree(self.template, folder)
        finder = Model()
        self.model.otherwise = finder
        environment = {
            "REFLEXIO_MODEL": "openai:scripted",
            "OPENAI_BASE_URL": self.model.url,
            "OPENAI_API_KEY": "not-a-real-key",
            "REFLEXIO_CONCURRENCY": "1",
        }
        server = FaultyServer(self.forks, folder, environment)
        server.start(boundary=boundary)
        try:
            with ReflexioClient(url_endpoint=server.url, retries=0) as client:
                story = Story(server, client)
                story.tell()
                outcome = story.outcome(finder)
        finally:
            server.end()
        assert broken_findings(folder) == []
        return outcome, server


@pytest.fixture(scope="module")
def stage(forks: Launcher, served_model: ScriptedModel, template: Path) -> Stage:
    return Stage(forks, served_model, template)


@pytest.fixture(scope="module")
def undisturbed(stage: Stage) -> tuple[Outcome, list[str]]:
    """How the story ends without a fault, and the moments that it passes."""
    outcome, server = stage.tell(stage.template.parent / "undisturbed", 0)
    return outcome, server.boundaries()


def chosen(count: int) -> list[int]:
    moments = list(range(1, count + 1))
    return moments if SEED == "all" else sorted(random.Random(SEED).sample(moments, min(SAMPLE, count)))


def test_the_story_passes_commits_and_steps(undisturbed: tuple[Outcome, list[str]]) -> None:
    outcome, boundaries = undisturbed
    kinds = Counter(re.sub(r"^\d+ ", "", line) for line in boundaries)
    assert kinds["before a commit"] > 20
    assert {"before the step extract", "after the step extract", "after the step keep"} <= set(kinds)
    assert len(outcome.learned) == 2 * (len(USERS) + 1)
    assert outcome.rules == [(RULE, "approved", 4)]
    assert outcome.paid == sum(outcome.asked.values())


def test_whatever_moment_the_server_dies_at_nothing_is_lost_and_nothing_is_twice(
    stage: Stage, undisturbed: tuple[Outcome, list[str]], tmp_path: Path
) -> None:
    expected, boundaries = undisturbed
    for moment in chosen(len(boundaries)):
        place = f"seed {SEED}, {boundaries[moment - 1]}"
        outcome, _ = stage.tell(tmp_path / str(moment), moment)
        assert (outcome.turns, outcome.learned, outcome.rules) == (
            expected.turns,
            expected.learned,
            expected.rules,
        ), place
        # The one call whose answer the dead server had not stored yet is made again, and no other.
        again = outcome.asked - expected.asked
        assert sum(again.values()) <= 1, (place, again)
        assert expected.asked - outcome.asked == Counter(), place
        made = sum(outcome.asked.values())
        assert made - 1 <= outcome.paid <= made, place
