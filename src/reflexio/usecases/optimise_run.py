"""The work of an optimisation job, as a durable workflow: prepare, search, finish.

Every call to the assistant and to a model is a step. After a crash the search begins again from the same seed and is
given the answers that were there already, so it comes to the same place without asking anybody twice.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from reflexio.errors import InvalidRequest, ProviderRefused, ReflexioError
from reflexio.learning.optimise import gepa
from reflexio.learning.optimise.adopt import CHANGED, Outcome, adopt, decide
from reflexio.learning.optimise.rollout import Rollouts, Stage
from reflexio.learning.optimise.trial import Models, Trials
from reflexio.learning.optimise.windows import Source, scenes
from reflexio.models.config import Config, PlaybookOptimizerConfig
from reflexio.models.learning import Kind, Learning
from reflexio.models.optimisation import JobStatus
from reflexio.models.rollout import Guidance, Scene, Trial
from reflexio.ports.assistant import Assistant
from reflexio.ports.clock import Clock
from reflexio.ports.storage import LearningFilter, Store, Tx
from reflexio.ports.work import Json, Steps
from reflexio.usecases import optimise_records as records
from reflexio.usecases.configure import stored
from reflexio.usecases.learnings import one
from reflexio.usecases.optimise import NO_MODEL, WORKFLOW, Optimiser, get, named, prospect
from reflexio.usecases.optimise_purse import Purse, account

ERASED = "Turns of its source windows were deleted while it ran; nothing was changed."


class Skipped(ReflexioError):
    """There is nothing to do."""

    def __str__(self) -> str:
        return self.detail


@dataclass(frozen=True)
class Prepared:
    """What a run began with. It stays so, whatever is configured or changed meanwhile."""

    target: Learning
    seed: int
    settings: PlaybookOptimizerConfig
    train: tuple[Source, ...]
    validation: tuple[Source, ...]

    @property
    def windows(self) -> tuple[Source, ...]:
        return tuple(dict.fromkeys((*self.validation, *self.train)))

    @property
    def held_out(self) -> frozenset[str]:
        return frozenset(each.key for each in self.validation)


@dataclass(frozen=True)
class Runs:
    """Does the work of jobs."""

    optimiser: Optimiser
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep

    def register(self) -> None:
        self.optimiser.classroom.work.register(WORKFLOW, self.optimise)

    async def optimise(self, steps: Steps, data: Json) -> Json:
        classroom = self.optimiser.classroom
        store = classroom.database.of(data["org_id"])
        run = _Run(self.optimiser, store, data["job_id"], steps, self.pause, Purse(store, classroom.clock))
        try:
            await run.perform()
            await classroom.resume(store)
        except Skipped as reason:
            await run.end("skipped", str(reason))
        except ReflexioError as error:
            if isinstance(error, ProviderRefused):
                await classroom.refused(run.store, error)
            await run.end("failed", str(error))
        return {}


@dataclass(frozen=True)
class _Run:
    optimiser: Optimiser
    store: Store
    job_id: int
    steps: Steps
    pause: Callable[[float], Awaitable[None]]
    purse: Purse

    @property
    def clock(self) -> Clock:
        return self.optimiser.classroom.clock

    async def end(self, status: JobStatus, reason: str) -> None:
        now, bill = self.clock.now(), self.purse.bill()

        def write(tx: Tx) -> None:
            job = account(tx, get(tx, self.job_id), bill, now)
            tx.optimisations.put(job if job.has_ended else job.ended(status, reason, now))

        await self.store.write(write)

    async def perform(self) -> None:
        prepared, played, config = await self._prepared()
        assistant = self._assistant(config)
        try:
            trials = self._trials(prepared, config, assistant)
            search = self._search(prepared, played, trials)
            await search.run()
        finally:
            await assistant.aclose()
        tried = [each for each in trials.made.values() if each.content != prepared.target.content]
        if tried and all(each.error for each in tried):
            raise ReflexioError.told(f"No trial succeeded. {tried[-1].error}")
        outcome = decide(tried, prepared.held_out, prepared.settings)
        await self.steps("finish", lambda: self._finish(prepared, search, outcome, tried))

    async def _prepared(self) -> tuple[Prepared, list[Scene], Config]:
        made = await self.steps("prepare", self._prepare)
        if "skip" in made:
            raise Skipped(made["skip"])
        settings = PlaybookOptimizerConfig.model_validate(made["settings"])
        train, validation = (tuple(map(Source.read, made[name])) for name in ("train", "validation"))
        where = LearningFilter(Kind(made["target_kind"]), ids=(made["target_id"],), statuses=None)

        def look(tx: Tx) -> tuple[Prepared, list[Scene], Config]:
            target = tx.learnings.get(where)
            if target is None or target.content != made["content"]:
                raise Skipped(CHANGED)
            prepared = Prepared(target, made["seed"], settings, train, validation)
            return prepared, _played(tx, prepared), stored(tx)

        return await self.store.read(look)

    async def _prepare(self) -> Json:
        config, now = await self.store.read(stored), self.clock.now()
        unable = await self.optimiser.unable(config)

        def write(tx: Tx) -> Json:
            job = get(tx, self.job_id)
            found = prospect(tx, config, one(tx, named(job.target_kind, job.target_id)), now)
            if obstacle := found.obstacle or unable:
                return {"skip": obstacle}
            settings = config.playbook_optimizer_config
            if not job.has_ended:
                running = {"status": "running", "max_metric_calls": settings.max_metric_calls}
                tx.optimisations.put(job.changed(updated_at=now, **running))
            return {
                "target_kind": job.target_kind,
                "target_id": job.target_id,
                "content": found.target.content,
                "seed": job.seed,
                "settings": settings.model_dump(mode="json", exclude={"webhook_auth_header"}),
                "train": [each.json() for each in found.windows.train],
                "validation": [each.json() for each in found.windows.validation],
            }

        return await self.store.write(write)

    def _assistant(self, config: Config) -> Assistant:
        try:
            return self.optimiser.assistant(config.playbook_optimizer_config)
        except InvalidRequest as error:
            raise Skipped(str(error)) from error

    def _trials(self, prepared: Prepared, config: Config, assistant: Assistant) -> Trials:
        critic = self.optimiser.critic(config)
        if critic is None:
            raise Skipped(NO_MODEL)
        target = prepared.target
        return Trials(
            Guidance(target.id, target.content, target.trigger),
            Rollouts(Stage(self.steps, assistant)),
            Models(self.steps, critic, self.purse, self.pause),
        )

    def _search(self, prepared: Prepared, played: Sequence[Scene], trials: Trials) -> gepa.Search:
        by_key = {each.key: each for each in played}
        return gepa.Search(
            trials,
            tuple(by_key[each.key] for each in prepared.train),
            tuple(by_key[each.key] for each in prepared.validation),
            prepared.settings,
            prepared.seed,
            gepa.Notebook(lambda *new: self._write(trials, prepared.held_out, *new)),
        )

    def _write(
        self,
        trials: Trials,
        held_out: frozenset[str],
        found: Sequence[gepa.Wording],
        made: Sequence[Trial],
        told: Sequence[gepa.Event],
        metric_calls: int,
    ) -> Coroutine[Any, Any, None]:
        """What is new in the search, in one transaction. It is taken down now, and written a moment later."""
        now, bill = self.clock.now(), self.purse.bill()
        wordings, events = records.wordings(found, now), records.events(told, now)
        evaluations = records.evaluations(made, {each.content: each for each in found}, held_out, now)
        progress = records.progress(trials, metric_calls)

        def write(tx: Tx) -> None:
            tx.optimisations.keep_wordings(self.job_id, wordings)
            tx.optimisations.keep_evaluations(self.job_id, evaluations)
            tx.optimisations.keep_events(self.job_id, events)
            job = account(tx, get(tx, self.job_id), bill, now)
            # One that was cancelled meanwhile stays so.
            tx.optimisations.put(job if job.has_ended else job.changed(updated_at=now, **progress))

        return self.store.write(write)

    async def _finish(self, prepared: Prepared, search: gepa.Search, outcome: Outcome, tried: Sequence[Trial]) -> Json:
        now, bill, windows = self.clock.now(), self.purse.bill(), prepared.windows
        progress = records.progress(search.trials, search.notebook.metric_calls)

        def write(tx: Tx) -> Json:
            job = account(tx, get(tx, self.job_id), bill, now)
            if job.has_ended:
                return {}
            if len(list(scenes(tx, windows, prepared.target, 1))) < len(windows):
                tx.optimisations.put(job.ended("skipped", ERASED, now, **progress))
                return {}
            made = adopt(tx, prepared.target, outcome.best, self.job_id, now) if outcome.adopted else None
            winner = outcome.best if made else ""
            scored = list(records.scored(search.notebook, tried, prepared.held_out, winner, now))
            tx.optimisations.keep_wordings(self.job_id, scored)
            numbers = {each.content: each.id for each in tx.optimisations.wordings(self.job_id)}
            ended = job.ended(
                "completed",
                f"{outcome.reason} {CHANGED}" if outcome.adopted and not made else outcome.reason,
                now,
                best_candidate_id=numbers.get(outcome.best),
                best_score=outcome.score,
                winner_content=winner or None,
                successor_target_id=made.id if made else None,
                **progress,
            )
            tx.optimisations.put(ended)
            return {}

        return await self.store.write(write)


def _played(tx: Tx, prepared: Prepared) -> list[Scene]:
    found = list(scenes(tx, prepared.windows, prepared.target, prepared.settings.max_turns))
    if len(found) < len(prepared.windows):
        raise Skipped(ERASED)
    return found
