"""One cluster becomes one agent playbook: what the learner reads, and what becomes of its answer.

Two steps. Writing asks the learner; keeping is one transaction, in which nothing that was erased meanwhile survives
and what a person has approved stays as it is.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import TypeAdapter

from reflexio.errors import ProviderError, ProviderUnavailable
from reflexio.learning.aggregate import fingerprint, unit
from reflexio.learning.gather import vectors_of
from reflexio.learning.succession import retire
from reflexio.learning.workflow import School, account
from reflexio.models.config import Config
from reflexio.models.learned import Gathered, Rule
from reflexio.models.learning import Kind, Learning
from reflexio.models.paging import Page
from reflexio.models.status import PlaybookStatus
from reflexio.ports.storage import Cluster, LearningFilter, LineageEvent, Member, QueryVector, Store, Tx
from reflexio.ports.work import Json
from reflexio.retrieval.search import Question, search
from reflexio.retrieval.similar import ArmsOf

OPERATION = "aggregate"
MOST_READ = 40
"""Members that a learner reads: the clearest ones, each wording once."""
MOST_KNOWN = 6
MOST_WINDOWS = 1000
AGAIN = 2
"""What a person rejected is proposed again when so many times as many users' playbooks say it."""
RULE = TypeAdapter(Rule)
OPEN = (PlaybookStatus.APPROVED, PlaybookStatus.PENDING)


@dataclass(frozen=True)
class Writing:
    """A cluster that is to be written about."""

    agent_version: str
    name: str
    number: int
    least: int
    config: Config
    store: Store
    school: School

    async def write(self) -> Json:
        """What the learner makes of the cluster as it is now, and which members it was shown."""
        members = await self.store.read(self._members)
        if len(members) < self.least:
            return {"is_gone": True}
        vectors = await vectors_of(members, self.school.embedder)
        centre = unit(vectors.sum(axis=0, keepdims=True))[0]
        clearest = [members[place] for place in np.argsort(-(vectors @ centre), kind="stable")]
        shown = _telling(clearest)[:MOST_READ]
        query = QueryVector(self.school.embedder.name, tuple(centre.tolist()))
        seen = {"shown": [each.id for each in shown], "fingerprint": fingerprint(members)}
        gathered, is_rejected = await self.store.read(lambda tx: self._gathered(tx, shown, len(members), query))
        if is_rejected or len(gathered.members) < len(shown):
            return {**seen, "is_unasked": True}
        made = await self.school.learner.generalise(gathered, self.config)
        await account(self.store, made.spend, self.school.clock, OPERATION)
        return {**seen, "rule": RULE.dump_python(made.rule) if made.rule else None}

    def _members(self, tx: Tx) -> list[Member]:
        return tx.pools.members(self.agent_version, self.name, self.school.embedder.name, (self.number,))

    def _state(self, tx: Tx) -> Cluster:
        return tx.pools.cluster(self.agent_version, self.name, self.number)

    def _gathered(self, tx: Tx, shown: Sequence[Member], count: int, query: QueryVector) -> tuple[Gathered, bool]:
        made = self._made(tx)
        before = next((row for row in made if row.review in OPEN), None)
        rows = tx.learnings.many([each.id for each in shown])
        members = tuple(rows[each.id] for each in shown if each.id in rows)
        where = LearningFilter(Kind.AGENT_PLAYBOOK, agent_version=self.agent_version, name=self.name, reviews=OPEN)
        own = {row.id for row in made}
        hits = search(ArmsOf(tx, where), Question(shown[0].content, query, top_k=MOST_KNOWN + len(own))).hits
        near = tx.learnings.many([hit.id for hit in hits if hit.id not in own])
        known = tuple(near[hit.id] for hit in hits if hit.id in near)[:MOST_KNOWN]
        return Gathered(self.name, members, count, before, known), _is_rejected(made, count)

    def _made(self, tx: Tx) -> list[Learning]:
        """What was made of this cluster and still stands, newest first."""
        where = LearningFilter(
            Kind.AGENT_PLAYBOOK, agent_version=self.agent_version, name=self.name, clusters=(self.number,)
        )
        return list(tx.learnings.page(where, Page(MOST_WINDOWS)).rows)

    def keep(self, tx: Tx, answer: Json) -> Json:
        """Stores what came of it; tells the `numbers` of new agent playbooks, and whether the answer `is_stale`.

        A member that went while the learner read it takes the answer with it: the cluster has changed again.
        """
        members = self._members(tx)
        is_stale = bool(set(answer.get("shown", ())) - {each.id for each in members})
        if answer.get("is_gone") or is_stale:
            shrunk = dataclasses.replace(self._state(tx), size=len(members), written="")
            tx.pools.note(self.agent_version, self.name, shrunk)
            return {"numbers": [], "is_stale": is_stale}
        now = self.school.clock.now()
        rule = RULE.validate_python(answer["rule"]) if answer.get("rule") else None
        made = [row for row in self._made(tx) if row.review in OPEN]
        rows = tx.learnings.many([each.id for each in members[-MOST_WINDOWS:]])
        evidence = {
            "source_windows": [_window(rows[each]) for each in sorted(rows)],
            "support": support(each.user_id for each in members),
        }
        is_news = rule is not None and not any(_says(row, rule) for row in made)
        if rule is not None and is_news:
            number = self._put(tx, rule, made, rows, evidence, now)
        else:
            number = _prove(tx, made, evidence, now)
        written = {"playbook_id": number, "written": answer["fingerprint"]}
        clean = dataclasses.replace(self._state(tx), failed="", attempts=0, error="", size=len(members))
        tx.pools.note(self.agent_version, self.name, dataclasses.replace(clean, **written))
        return {"numbers": [number] if is_news else [], "is_stale": False}

    def fail(self, tx: Tx, error: ProviderError) -> None:
        """The learner failed. The cluster is still one that changed, and tried again. Outages are no fault of its."""
        state = self._state(tx)
        seen = fingerprint(self._members(tx))
        attempts = (state.attempts if state.failed == seen else 0) + (not isinstance(error, ProviderUnavailable))
        failed = dataclasses.replace(state, failed=seen, attempts=attempts, error=str(error)[:1000])
        tx.pools.note(self.agent_version, self.name, failed)

    def _put(
        self, tx: Tx, rule: Rule, made: Sequence[Learning], rows: dict[int, Learning], evidence: Json, now: int
    ) -> int:
        """A pending playbook. It takes the place of pending ones now, and of approved ones once it is approved."""
        pending = [row for row in made if row.review is PlaybookStatus.PENDING]
        approved = [row.id for row in made if row.review is PlaybookStatus.APPROVED]
        carried = [each for row in pending for each in row.details.get("replaces", [])]
        sources = {row.source for row in rows.values()}
        learner = self.school.learner
        details = {
            **evidence,
            "replaces": list(dict.fromkeys([*approved, *carried])),
            "learner": learner.name,
            "fingerprint": learner.fingerprint,
        }
        new = Learning(
            Kind.AGENT_PLAYBOOK,
            rule.content,
            agent_version=self.agent_version,
            name=self.name,
            source=sources.pop() if len(sources) == 1 else "",
            trigger=rule.trigger,
            rationale=rule.rationale,
            cluster=self.number,
            details=details,
            created_at=now,
            modified_at=now,
        )
        (number,) = tx.learnings.add([new])
        why = f"made of {len(evidence['source_windows'])} playbooks of {evidence['support']} users"
        tx.learnings.note(LineageEvent(number, new.kind, "aggregated", now, learner.name, why))
        for row in pending:
            retire(tx, row, number, learner.name, why, now)
        return number


def support(users: Iterable[str]) -> int:
    """Distinct users: one who says it often is one."""
    return len(set(users))


def _window(row: Learning) -> Json:
    """All turns of the window that a playbook was learned from, not only those it quotes."""
    turns = row.details.get("window_interaction_ids") or row.details.get("source_interaction_ids", [])
    return {"user_playbook_id": row.id, "source_interaction_ids": turns}


def _says(row: Learning, rule: Rule) -> bool:
    return (row.content, row.trigger) == (rule.content, rule.trigger)


def _prove(tx: Tx, made: Sequence[Learning], evidence: Json, now: int) -> int:
    """New members say nothing new: the playbook that waits for a decision has more to show for itself."""
    for row in [each for each in made if each.review is PlaybookStatus.PENDING][:1]:
        tx.learnings.replace(dataclasses.replace(row, details={**row.details, **evidence}, modified_at=now))
    return made[0].id if made else 0


def _telling(members: Sequence[Member]) -> list[Member]:
    """Each advice once, and once more from another user: what two say in the same words is no secret of one."""
    users: defaultdict[str, set[str]] = defaultdict(set)
    kept = []
    for each in members:
        said = users[each.content.strip().lower()]
        if len(said) < 2 and each.user_id not in said:
            said.add(each.user_id)
            kept.append(each)
    return kept


def _is_rejected(made: Sequence[Learning], count: int) -> bool:
    """Whether the last word of a person about this cluster was no, and it has not grown much since."""
    if not made or made[0].review is not PlaybookStatus.REJECTED:
        return False
    return count < AGAIN * len(made[0].details.get("source_windows", []))
