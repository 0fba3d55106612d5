"""Learning a user's turns once more: window by window into a draft, which at the end takes the place of the last one.

The draft is a value made of the answers of the steps, so that after a crash it is made again from those, for nothing.
What is current is neither read nor changed.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from reflexio.learning.consolidate import MOST_NEIGHBOURS, NEAR, Origin, learning
from reflexio.learning.window import Plan, asked_for, plans, window
from reflexio.learning.workflow import CANDIDATES, DECISIONS, School, find, settle
from reflexio.models.config import Config
from reflexio.models.interaction import Interaction
from reflexio.models.learned import Candidate, Decision, Neighbour, Neighbourhood
from reflexio.models.learning import Kind, Learning
from reflexio.models.status import Status
from reflexio.ports.embedding import Embedder
from reflexio.ports.storage import LearningFilter, LineageEvent, Store, TurnScope, Tx
from reflexio.ports.work import Json, Steps

OPERATION = "rerun"


@dataclass(frozen=True)
class Draft:
    """What was learned of a user so far. Rows are numbered in the order they were made, and none is stored yet."""

    rows: tuple[Learning, ...] = ()
    made: int = 0

    def after(self, candidate: Candidate, decision: Decision, origin: Origin, now: int) -> "Draft":
        targets = [row for row in self.rows if row.id in decision.targets]
        rest = tuple(row for row in self.rows if row.id not in decision.targets)
        match decision.action:
            case "drop":
                return self
            case "forget":
                return replace(self, rows=rest)
            case "add" | "merge" | "replace":
                made = replace(learning(candidate, decision, origin, now), id=self.made + 1)
                if decision.action == "merge":
                    made = _proved_by(made, targets)
                return Draft((*(self.rows if decision.action == "add" else rest), made), made.id)


def _proved_by(made: Learning, others: Sequence[Learning]) -> Learning:
    """What was merged stands on the evidence of all its parts."""
    all_of = [*others, made]
    spans = dict.fromkeys(each.details["source_span"] for each in all_of)
    details = {
        "source_span": "\n".join(spans),
        "source_interaction_ids": sorted({turn for each in all_of for turn in each.details["source_interaction_ids"]}),
        "window_interaction_ids": sorted({turn for each in all_of for turn in each.details["window_interaction_ids"]}),
    }
    return replace(made, details={**made.details, **details})


@dataclass(frozen=True)
class Lesson:
    """One user's part of a rerun."""

    kind: Kind
    user_id: str
    scope: TurnScope
    config: Config
    store: Store
    school: School

    async def windows(self, steps: Steps) -> list[Plan]:
        """All turns in the scope, in consecutive windows."""
        planned = await steps("plan", self._plan)
        return [Plan(**{**each, "turns": tuple(each["turns"])}) for each in planned["windows"]]

    async def _plan(self) -> Json:
        turns = await self.store.read(lambda tx: tx.interactions.within(self.scope, self.user_id))
        return {"windows": [asdict(each) for each in plans(turns, self.config)]}

    async def learn(self, steps: Steps, number: int, windows: Sequence[Plan], draft: Draft) -> Draft:
        """The draft after one more window."""
        here = windows[number]
        found = await steps(f"{number}.extract", lambda: self._extract(number, windows))
        if not found["candidates"]:
            return draft
        candidates = CANDIDATES.validate_python(found["candidates"])
        decided = await steps(f"{number}.consolidate", lambda: self._consolidate(candidates, draft))
        origin = self._origin(here)
        for candidate, decision in zip(candidates, DECISIONS.validate_python(decided["decisions"]), strict=True):
            draft = draft.after(candidate, decision, origin, self.school.clock.now())
        return draft

    async def _extract(self, number: int, windows: Sequence[Plan]) -> Json:
        here = windows[number]
        room = max(0, self.config.window_size - len(here.turns))
        context = [turn for each in windows[:number] for turn in each.turns][-room:] if room else []

        def look(tx: Tx) -> tuple[list[Interaction], list[Interaction]]:
            found = tx.interactions.many([*context, *here.turns])
            return [found[each] for each in context if each in found], [
                found[each] for each in here.turns if each in found
            ]

        seen = window(self.user_id, here.agent_version, *await self.store.read(look))
        return await find(seen, asked_for(self.config, here.source, self.kind), self.store, self.school, OPERATION)

    async def _consolidate(self, candidates: Sequence[Candidate], draft: Draft) -> Json:
        around = await neighbourhoods(self.school.embedder, candidates, draft.rows)
        return await settle(around, self.config, self.store, self.school, OPERATION)

    def _origin(self, here: Plan) -> Origin:
        learner = self.school.learner
        return Origin(
            self.user_id,
            here.agent_version,
            here.source,
            here.request_id,
            here.turns,
            learner.name,
            learner.fingerprint,
            Status.PENDING,
        )

    async def keep(self, steps: Steps, draft: Draft, also: Callable[[Tx], object]) -> None:
        """Puts the draft in the place of what was pending, in one transaction with `also`."""

        def put(tx: Tx) -> None:
            tx.learnings.remove(self.pending)
            store(tx, draft.rows, self.school.clock.now())
            also(tx)

        async def kept() -> Json:
            await self.store.write(put)
            return {}

        await steps("keep", kept)

    @property
    def pending(self) -> LearningFilter:
        """What a rerun of this scope replaces. Its times do not count: there is one pending generation."""
        version = self.scope.agent_version if self.kind is Kind.USER_PLAYBOOK else None
        return LearningFilter(
            self.kind,
            user_id=self.user_id,
            agent_version=version,
            source=self.scope.source,
            statuses=(Status.PENDING,),
        )


def store(tx: Tx, rows: Sequence[Learning], now: int) -> None:
    if not rows:
        return
    numbers = tx.learnings.add(rows)
    tx.learnings.note(
        *(
            LineageEvent(number, row.kind, "learned", now, row.details["learner"], _why(row), to_status=row.status)
            for number, row in zip(numbers, rows, strict=True)
        )
    )


def _why(row: Learning) -> str:
    return f"rerun: learned from turns {', '.join(map(str, row.details['source_interaction_ids']))}"


async def neighbourhoods(
    embedder: Embedder, candidates: Sequence[Candidate], rows: Sequence[Learning]
) -> list[Neighbourhood]:
    """What the draft holds next to each candidate, nearest first."""
    if not rows:
        return [Neighbourhood(each, ()) for each in candidates]
    vectors = await embedder.embed([*(each.text for each in candidates), *(row.text for row in rows)])
    cosines = vectors[: len(candidates)] @ vectors[len(candidates) :].T
    return [
        Neighbourhood(candidate, _nearest([Neighbour(*pair) for pair in zip(rows, near.tolist(), strict=True)]))
        for candidate, near in zip(candidates, cosines, strict=True)
    ]


def _nearest(known: Sequence[Neighbour]) -> tuple[Neighbour, ...]:
    near = [each for each in known if each.similarity >= NEAR]
    return tuple(sorted(near, key=lambda each: (-each.similarity, each.learning.id))[:MOST_NEIGHBOURS])
