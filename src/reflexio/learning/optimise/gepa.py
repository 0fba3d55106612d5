"""GEPA proposes and selects wordings; what they are worth is tried here. Same seed and same answers, same search."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from reflexio.errors import AssistantFailed
from reflexio.learning.optimise.conduct import Ask, conduct
from reflexio.learning.optimise.cost import minibatch
from reflexio.learning.optimise.together import together
from reflexio.learning.optimise.trial import Trials
from reflexio.models.config import PlaybookOptimizerConfig
from reflexio.models.rollout import Guidance, Scene, Trial
from reflexio.ports.critic import RewordRequest
from reflexio.ports.work import Json

if TYPE_CHECKING:
    from gepa.core.adapter import EvaluationBatch

log = logging.getLogger("reflexio.optimise")

COMPONENT = "playbook_content"
PRIVATE = {
    "state", "final_state", "trainset_loader", "inputs", "outputs", "trajectories", "outputs_by_val_id",
    "dataset", "reflective_dataset", "prompts", "raw_lm_outputs", "objective_scores", "run_dir",
}  # fmt: skip
"""Of GEPA's events: its own objects, and texts that stand elsewhere."""


@dataclass(frozen=True)
class Event:
    """Something that GEPA told, numbered in the order it was told."""

    number: int
    type: str
    payload: Json


@dataclass(frozen=True)
class Wording:
    """A wording that was tried, numbered in the order of appearance; 0 is the incumbent."""

    index: int
    content: str
    parents: tuple[int, ...] = ()


@dataclass
class Notebook:
    """What a search is made of, as it grows. `write` keeps what is new; told again after a crash, nothing changes."""

    write: Callable[[Sequence[Wording], Sequence[Trial], Sequence[Event], int], Coroutine[Any, Any, None]]
    wordings: dict[str, Wording] = field(default_factory=dict)
    metric_calls: int = 0
    _events: list[Event] = field(default_factory=list)
    _numbered: int = 0
    _writing: "asyncio.Task[None] | None" = None

    def wording(self, content: str, parents: Sequence[str] = ()) -> Wording:
        if content not in self.wordings:
            known = tuple(self.wordings[each].index for each in parents if each in self.wordings)
            self.wordings[content] = Wording(len(self.wordings), content, known)
        return self.wordings[content]

    def tell(self, kind: str, event: Mapping[str, Any]) -> None:
        self._numbered += 1
        self._events.append(
            Event(self._numbered, kind, {name: _plain(each) for name, each in event.items() if name not in PRIVATE})
        )
        self.metric_calls = int(event.get("metric_calls_used", self.metric_calls))

    async def keep(self, trials: Sequence[Trial] = ()) -> None:
        """Begins to write what is new. It can be made again, so the search does not wait for the disk."""
        await self.settled()
        events, self._events = self._events, []
        wordings = [self.wordings[each.content] for each in trials]
        self._writing = asyncio.ensure_future(self.write(wordings, trials, events, self.metric_calls))

    async def settled(self) -> None:
        """All is written."""
        if self._writing is not None:
            await self._writing


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {str(name): _plain(each) for name, each in value.items()}
        case list() | tuple() | set():
            return [_plain(each) for each in value]
        case _:
            return str(value)


class Windows:
    """Scenes by their keys. GEPA remembers scores by these: with its own numbers, the first window to search with
    and the first one held out would both be 0, and the one would be given the score of the other."""

    def __init__(self, scenes: Sequence[Scene]) -> None:
        self._scenes = {each.key: each for each in scenes}

    def all_ids(self) -> Sequence[str]:
        return list(self._scenes)

    def fetch(self, ids: Sequence[str]) -> list[Scene]:
        return [self._scenes[each] for each in ids]

    def __len__(self) -> int:
        return len(self._scenes)


@dataclass(frozen=True)
class Search:
    """One search: from what it starts, in which scenes, and within which bounds."""

    trials: Trials
    train: tuple[Scene, ...]
    validation: tuple[Scene, ...]
    config: PlaybookOptimizerConfig
    seed: int
    notebook: Notebook

    async def run(self) -> None:
        """Until the budget is used up or a wording is good enough. What was tried is in `trials` and the notebook."""
        try:
            await conduct(self._optimise)
        finally:
            await self.notebook.settled()

    def _optimise(self, ask: Ask) -> None:
        from gepa.api import optimize
        from gepa.utils import ScoreThresholdStopper

        incumbent = self.trials.incumbent.content
        self.notebook.wording(incumbent)
        same = self.train == self.validation
        optimize(
            seed_candidate={COMPONENT: incumbent},
            trainset=Windows(self.train),
            valset=None if same else Windows(self.validation),
            adapter=cast(Any, _Adapter(self, ask)),
            candidate_selection_strategy="pareto",
            frontier_type="instance",
            batch_sampler="epoch_shuffled",
            reflection_minibatch_size=minibatch(self.config, len(self.train)),
            use_merge=self.config.use_merge and self.config.max_merge_invocations > 0,
            max_merge_invocations=self.config.max_merge_invocations,
            max_metric_calls=self.config.max_metric_calls,
            stop_callbacks=ScoreThresholdStopper(self.config.early_stop_score),
            cache_evaluation=True,
            track_best_outputs=False,
            callbacks=[cast(Any, _Listener(self, ask))],
            logger=_Quiet(),
            seed=self.seed,
        )

    async def attempt(self, content: str, scenes: Sequence[Scene], *, played: bool) -> list[Trial]:
        before = set(self.trials.made)
        made = await together(self.trials.of(content, scene, played=played) for scene in scenes)
        self.notebook.wording(content)
        if new := [trial for key, trial in self.trials.made.items() if key not in before]:
            await self.notebook.keep(new)
        self._check_incumbent()
        return made

    def _check_incumbent(self) -> None:
        """Where the assistant fails with the wording in force, nothing can be compared. With too few windows left to
        search or to decide, going on would cost calls for nothing."""
        broken = {
            scene: trial.error
            for (_, scene), trial in self.trials.made.items()
            if trial.error and trial.incumbent.error
        }
        searched = [each for each in self.train if each.key not in broken]
        deciding = [each for each in self.validation if each.key not in broken]
        if not searched or len(deciding) < min(self.config.min_commit_windows, len(self.validation)):
            raise AssistantFailed(f"The assistant fails in too many windows. {next(iter(broken.values()))}")

    async def reword(self, content: str, trials: Sequence[Trial]) -> str:
        """Another wording, or none when the model has no new one. It sees nothing of held-out windows."""
        incumbent = self.trials.incumbent
        rewrite = RewordRequest(
            Guidance(incumbent.id, content, incumbent.trigger), tuple(trials), self._tried(content, trials)
        )
        made = await self.trials.models.reword(f"reflect/{self.trials.models.reflected}", rewrite)
        if made and made != content:
            self.notebook.wording(made, [content])
            return made
        return ""

    def _tried(self, content: str, trials: Sequence[Trial]) -> tuple[Trial, ...]:
        """Other wordings in the same windows, in the order they were thought of, whichever was through first."""
        here = {trial.scene.key for trial in trials}
        others = [
            each
            for each in self.trials.made.values()
            if each.scene.key in here and each.content not in (content, self.trials.incumbent.content)
        ]
        return tuple(sorted(others, key=lambda each: (self.notebook.wording(each.content).index, each.scene.key)))


@dataclass
class _Adapter:
    search: Search
    ask: Ask

    def evaluate(
        self, batch: list[Scene], candidate: dict[str, str], capture_traces: bool = False
    ) -> "EvaluationBatch[Trial, Trial]":
        from gepa.core.adapter import EvaluationBatch

        scenes = list({each.key: each for each in batch}.values())
        content = candidate[COMPONENT]
        made = self.ask(lambda: self.search.attempt(content, scenes, played=capture_traces))
        by_scene = {trial.scene.key: trial for trial in made}
        trials = [by_scene[each.key] for each in batch]
        scores = [trial.judgement.score for trial in trials]
        return EvaluationBatch(outputs=trials, scores=scores, trajectories=trials if capture_traces else None)

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: "EvaluationBatch[Trial, Trial]", components_to_update: list[str]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        trials = {trial.scene.key: trial for trial in eval_batch.trajectories or ()}
        return {COMPONENT: [{"trial": trial} for trial in trials.values()]}

    def propose_new_texts(
        self,
        candidate: dict[str, str],
        reflective_dataset: Mapping[str, Sequence[Mapping[str, Any]]],
        components_to_update: list[str],
    ) -> dict[str, str]:
        content = candidate[COMPONENT]
        trials = [each["trial"] for each in reflective_dataset[COMPONENT]]
        made = self.ask(lambda: self.search.reword(content, trials))
        return {COMPONENT: made} if made else {}


@dataclass
class _Listener:
    """Writes down all that GEPA tells. Its method names are those of the events, with `on_` before them."""

    search: Search
    ask: Ask

    def __getattr__(self, name: str) -> Callable[[Mapping[str, Any]], None]:
        if not name.startswith("on_"):
            raise AttributeError(name)
        kind = name.removeprefix("on_")

        def listen(event: Mapping[str, Any]) -> None:
            self.search.notebook.tell(kind, event)
            # The others are kept along with the next trials.
            if kind == "optimization_end":
                self.ask(self.search.notebook.keep)

        return listen


class _Quiet:
    def log(self, message: str) -> None:
        log.debug("%s", message)
