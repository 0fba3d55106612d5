"""What a search for better wording costs, whether it finds what there is to find, and what it adds to its models' time.

The assistant is a webhook, the judge and the rewriter a model, all scripted and over HTTP. The planted better wording
does two things that the incumbent does not; the rewriter hits upon one of them every other time.
"""

import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reflexio import ReflexioClient
from reflexio.models.optimisation import PlaybookOptimizationJob
from reflexio.server.process import running_server
from tests import parcels
from tests.bench.report import Figure, percentile
from tests.scripted_model import Answer, Asked, scripted_model
from tests.webhook import Webhook, webhook

SEEDS, WINDOWS = 10, 3
LATENCY, QUIET = 0.02, 0.02
REST = 0.5
"""Seconds between two runs: what was written is embedded meanwhile, which is no part of a search."""


@dataclass
class Stopwatch:
    """When one of the models was at work."""

    spans: list[tuple[float, float]] = field(default_factory=list)
    busy: int = 0
    last: float = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        began = time.perf_counter()
        self.busy += 1
        time.sleep(LATENCY)
        yield
        self.last = time.perf_counter()
        self.busy -= 1
        self.spans.append((began, self.last))

    @property
    def is_quiet(self) -> bool:
        """Nobody is asked: perhaps it is over. To look more often would be work for the server that is measured."""
        return not self.busy and time.perf_counter() - self.last > QUIET

    def taken(self) -> float:
        """Seconds in which at least one was, since the last look."""
        spans, self.spans = sorted(self.spans), []
        total, until = 0.0, 0.0
        for began, ended in spans:
            total += max(0.0, ended - max(began, until))
            until = max(until, ended)
        return total


class Critic:
    """Judges by deeds. Its wordings are guesses: half of them add a deed, half of them chatter."""

    def __init__(self, watch: Stopwatch) -> None:
        self.dice = random.Random(0)
        self._watch = watch

    def __call__(self, asked: Asked) -> Answer:
        with self._watch.running():
            return self._answer(asked)

    def _answer(self, asked: Asked) -> Answer:
        if "verdict" in asked.wants:
            return parcels.opinion(asked.case)
        if "reason" not in asked.wants:
            return {each: [] for each in asked.schema.get("required", ())}
        content = parcels.in_force(asked.case)
        missing = [deed for deed in parcels.DEEDS if deed not in content]
        helps = missing and self.dice.random() < 0.5
        added = f"First {self.dice.choice(missing)}." if helps else self.dice.choice(parcels.CHATTER)
        return {"content": f"{content} {added}", "reason": "a guess"}


@contextmanager
def world(watch: Stopwatch) -> Iterator[tuple[ReflexioClient, Webhook, Critic]]:
    critic = Critic(watch)

    def assistant(sent: dict[str, Any]) -> dict[str, Any]:
        with watch.running():
            return dict(parcels.reply(sent))

    with tempfile.TemporaryDirectory() as folder, scripted_model(otherwise=critic) as model, webhook(assistant) as hook:
        environment = {"REFLEXIO_MODEL": "openai:scripted", "OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "any"}
        with running_server(Path(folder), environment) as url, ReflexioClient(url_endpoint=url) as client:
            settings = {"enabled": True, "webhook_url": hook.url}
            client.update_config({"playbook_optimizer_config": settings})
            yield client, hook, critic


def optimisation() -> list[Figure]:
    jobs, overhead, calls, watch = list[PlaybookOptimizationJob](), list[float](), list[int](), Stopwatch()
    with world(watch) as (client, hook, critic):
        cited = [_published(client, number) for number in range(WINDOWS)]
        row = {"content": parcels.INCUMBENT, "trigger": parcels.TRIGGER, "source_windows": parcels.windows(cited)}
        numbers = [int(each) for each in client.add_agent_playbooks([row] * (SEEDS + 1)).ids]
        _searched(client, watch, numbers.pop(), 0)  # loads what is loaded once
        for seed, number in enumerate(numbers):
            time.sleep(REST)
            critic.dice = random.Random(seed)
            watch.taken()
            before, began = len(hook.requests), time.perf_counter()
            jobs.append(_searched(client, watch, number, seed))
            overhead.append(time.perf_counter() - began - watch.taken())
            calls.append(len(hook.requests) - before)
    found = sum(all(deed in (job.winner_content or "") for deed in parcels.DEEDS) for job in jobs)
    turns = sum(each["role"] == "User" for each in parcels.conversation())
    # A repeated incumbent is played along with every wording in every window, and against itself to begin with.
    repeated = [2 * turns * (job.evaluations + WINDOWS) for job in jobs]
    against_others = [2 * turns * job.evaluations for job in jobs]
    each = [1000 * seconds / job.evaluations for seconds, job in zip(overhead, jobs, strict=True)]
    budget = f"{WINDOWS} windows, {jobs[0].max_metric_calls} metric calls"
    return [
        Figure(f"assistant calls of a repeated incumbent's, {budget}", 100 * sum(calls) / sum(repeated), "%", 55),
        Figure("the same, not counting it against itself", 100 * sum(calls) / sum(against_others), "%"),
        Figure("planted better wording found", found, f"of {SEEDS}", 9, more_is_better=True),
        Figure("time outside the models per evaluation, median of the runs", percentile(each, 0.5), "ms", 50),
        Figure("the same, worst of the runs", max(each), "ms"),
        Figure("evaluations a run, mean", sum(job.evaluations for job in jobs) / SEEDS, ""),
    ]


def _published(client: ReflexioClient, number: int) -> list[int]:
    user = f"user-{number}"
    client.publish_interaction(user, parcels.conversation(number), wait_for_response=True)
    return sorted(turn.interaction_id for turn in client.get_interactions(user).interactions)[2:]


def _searched(client: ReflexioClient, watch: Stopwatch, number: int, seed: int) -> PlaybookOptimizationJob:
    job = client.run_playbook_optimization(number, seed=seed).job
    assert job is not None
    while not job.has_ended:
        time.sleep(0.005)
        if watch.is_quiet:
            job = client.get_playbook_optimization(job.job_id, details=False).job
    assert job.status == "completed", job.decision_reason
    return job


if __name__ == "__main__":
    for figure in optimisation():
        print(f"{figure.name}: {figure.value:.4g} {figure.unit}, wanted {figure.wanted}, reached {figure.reached}")
