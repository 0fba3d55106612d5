"""Summarises one cluster into one pending agent playbook.

Two steps: `write` asks the learner; `keep` stores the answer in one transaction, in which nothing that was erased
meanwhile survives and approved playbooks stay as they are.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import TypeAdapter

from reflexio.aggregation.cluster_identity import fingerprint, unit_length
from reflexio.aggregation.pool import vectors_of
from reflexio.aggregation.review import retire
from reflexio.aggregation.support import support_of, with_support
from reflexio.errors import ProviderError, ProviderUnavailable
from reflexio.jobs.token_budget import record_spend
from reflexio.learning.worker import LearnerSetup
from reflexio.models.config import Config, PlaybookAggregatorConfig
from reflexio.models.extraction import ClusterToSummarise, PlaybookText
from reflexio.models.learning import Kind, Learning, PlaybookStatus, Scope
from reflexio.models.paging import Page
from reflexio.models.review import taught_by
from reflexio.ports.storage import (
    NO_VECTORS,
    Cluster,
    LearningFilter,
    LineageEvent,
    Member,
    QueryVector,
    Store,
    TextVectors,
    Tx,
)
from reflexio.ports.work import Json
from reflexio.retrieval.search import SearchableLearnings, SearchQuery, search

OPERATION = "aggregate"
MOST_READ = 40
"""Members that a learner reads: the most central ones, each wording once."""
MOST_KNOWN = 6
MOST_WINDOWS = 1000
PROPOSE_AGAIN = 2
"""A rejected playbook is proposed again when its cluster has grown by this factor."""
RULE = TypeAdapter(PlaybookText)
OPEN = (PlaybookStatus.APPROVED, PlaybookStatus.PENDING)


@dataclass(frozen=True)
class ClusterSummary:
    """A cluster that is being summarised."""

    agent_version: str
    name: str
    number: int
    settings: PlaybookAggregatorConfig
    config: Config
    store: Store
    setup: LearnerSetup

    @property
    def label(self) -> str:
        """How an operation names the cluster, where it would name a user."""
        return f"{self.name}#{self.number}"

    async def write(self) -> Json:
        """The learner's answer for the cluster as it is now, and which members it was shown."""
        members = await self.store.read(self._members)
        if not support_of(members).meets(self.settings):
            return {"is_gone": True}
        vectors = await vectors_of(members, self.setup.embedder)
        centre = unit_length(vectors.sum(axis=0, keepdims=True))[0]
        # Rounded, so that of two members equally near, such as the only two, the older one comes first.
        nearness = np.round(vectors @ centre, 4)
        most_central = [members[place] for place in np.argsort(-nearness, kind="stable")]
        shown = _without_repetition(most_central)[:MOST_READ]
        query = QueryVector(self.setup.embedder.name, tuple(centre.tolist()))
        seen = {"shown": [member.id for member in shown], "fingerprint": fingerprint(members)}
        question, is_rejected = await self.store.read(lambda tx: self._question(tx, shown, members, query))
        if is_rejected or len(question.members) < len(shown):
            return {**seen, "is_unasked": True}
        answer = await self.setup.learner.summarise(question, self.config)
        await record_spend(self.store, answer.spend, self.setup.clock, OPERATION)
        return {**seen, "rule": RULE.dump_python(answer.rule) if answer.rule else None}

    def _members(self, tx: Tx) -> list[Member]:
        return tx.pools.members(self.agent_version, self.name, self.setup.embedder.name, (self.number,))

    def _state(self, tx: Tx) -> Cluster:
        return tx.pools.cluster(self.agent_version, self.name, self.number)

    def _question(
        self, tx: Tx, shown: Sequence[Member], members: Sequence[Member], query: QueryVector
    ) -> tuple[ClusterToSummarise, bool]:
        playbooks = self._playbooks(tx)
        before = next((row for row in playbooks if row.review in OPEN), None)
        rows = tx.learnings.many([member.id for member in shown])
        read = tuple(rows[member.id] for member in shown if member.id in rows)
        where = LearningFilter(Kind.AGENT_PLAYBOOK, agent_version=self.agent_version, name=self.name, reviews=OPEN)
        own = {row.id for row in playbooks}
        hits = search(
            SearchableLearnings(tx, where), SearchQuery(shown[0].content, query, top_k=MOST_KNOWN + len(own))
        ).hits
        near = tx.learnings.many([hit.id for hit in hits if hit.id not in own])
        known = tuple(near[hit.id] for hit in hits if hit.id in near)[:MOST_KNOWN]
        question = ClusterToSummarise(self.name, read, len(members), before, known)
        return question, _is_rejected(playbooks, support_of(members).statements)

    def _playbooks(self, tx: Tx) -> list[Learning]:
        """The current agent playbooks of this cluster, newest first."""
        where = LearningFilter(
            Kind.AGENT_PLAYBOOK, agent_version=self.agent_version, name=self.name, clusters=(self.number,)
        )
        return list(tx.learnings.page(where, Page(MOST_WINDOWS)).rows)

    def texts(self, answer: Json) -> list[str]:
        """What is to be embedded before the answer is kept."""
        rule = RULE.validate_python(answer["rule"]) if answer.get("rule") else None
        return [Learning(Kind.AGENT_PLAYBOOK, rule.content, trigger=rule.trigger).text] if rule else []

    def keep(self, tx: Tx, answer: Json, vectors: TextVectors = NO_VECTORS) -> Json:
        """Stores the answer; returns the `numbers` of new agent playbooks, and whether the answer `is_stale`.

        An answer is stale when a member was deleted while the learner read it.
        """
        members = self._members(tx)
        is_stale = bool(set(answer.get("shown", ())) - {member.id for member in members})
        if answer.get("is_gone") or is_stale:
            shrunk = with_support(dataclasses.replace(self._state(tx), written=""), members)
            tx.pools.put_clusters(self.agent_version, self.name, shrunk)
            return {"numbers": [], "is_stale": is_stale}
        now = self.setup.clock.now()
        rule = RULE.validate_python(answer["rule"]) if answer.get("rule") else None
        playbooks = [row for row in self._playbooks(tx) if row.review in OPEN]
        rows = tx.learnings.many([member.id for member in members[-MOST_WINDOWS:]])
        support = support_of(members)
        evidence = {
            "source_windows": [_source_window(rows[number]) for number in sorted(rows)],
            "support": support.users,
            "statements": support.statements,
        }
        is_new = rule is not None and (rule.content, rule.trigger) not in [(p.content, p.trigger) for p in playbooks]
        if rule is not None and is_new:
            number = self._add(tx, rule, playbooks, rows, evidence, vectors, now)
        else:
            number = _update_evidence(tx, playbooks, evidence, now)
        written = {"playbook_id": number, "written": answer["fingerprint"]}
        clean = with_support(dataclasses.replace(self._state(tx), failed="", attempts=0, error=""), members)
        tx.pools.put_clusters(self.agent_version, self.name, dataclasses.replace(clean, **written))
        return {"numbers": [number] if is_new else [], "is_stale": False}

    def fail(self, tx: Tx, error: ProviderError) -> None:
        """Records that the learner failed. The cluster is tried again; outages do not count against it."""
        state = self._state(tx)
        seen = fingerprint(self._members(tx))
        attempts = (state.attempts if state.failed == seen else 0) + (not isinstance(error, ProviderUnavailable))
        failed = dataclasses.replace(state, failed=seen, attempts=attempts, error=str(error)[:1000])
        tx.pools.put_clusters(self.agent_version, self.name, failed)

    def _add(
        self,
        tx: Tx,
        rule: PlaybookText,
        playbooks: Sequence[Learning],
        rows: dict[int, Learning],
        evidence: Json,
        vectors: TextVectors,
        now: int,
    ) -> int:
        """Adds a pending playbook. It replaces pending ones now, and approved ones once it is approved."""
        pending = [row for row in playbooks if row.review is PlaybookStatus.PENDING]
        approved = [row.id for row in playbooks if row.review is PlaybookStatus.APPROVED]
        inherited = [number for row in pending for number in row.details.get("replaces", [])]
        sources = {row.source for row in rows.values()}
        learner = self.setup.learner
        details = {
            **evidence,
            "replaces": list(dict.fromkeys([*approved, *inherited])),
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
            scope=_common_scope(rows.values()),
            cluster=self.number,
            details=details,
            created_at=now,
            modified_at=now,
        )
        (number,) = tx.learnings.add([new], vectors)
        count = len(evidence["source_windows"])
        reason = f"made of {count} playbook{'s' * (count != 1)}, {taught_by(evidence['support'])}"
        tx.learnings.note(LineageEvent(number, new.kind, "aggregated", now, learner.name, reason))
        for row in pending:
            retire(tx, row, number, learner.name, reason, now)
        return number


def _common_scope(members: Collection[Learning]) -> Scope:
    always = sum(member.scope is Scope.ALWAYS for member in members)
    return Scope.ALWAYS if always * 2 > len(members) else Scope.WHEN_RELEVANT


def _source_window(row: Learning) -> Json:
    """A user playbook with all turns of the window it was learned from, not only those it quotes."""
    turns = row.details.get("window_interaction_ids") or row.details.get("source_interaction_ids", [])
    return {"user_playbook_id": row.id, "source_interaction_ids": turns}


def _update_evidence(tx: Tx, playbooks: Sequence[Learning], evidence: Json, now: int) -> int:
    """Gives the pending playbook the evidence of new members that change nothing in its wording."""
    for row in [row for row in playbooks if row.review is PlaybookStatus.PENDING][:1]:
        tx.learnings.replace(dataclasses.replace(row, details={**row.details, **evidence}, modified_at=now))
    return playbooks[0].id if playbooks else 0


def _without_repetition(members: Sequence[Member]) -> list[Member]:
    """Each wording at most twice, from two users: what two users say in the same words is not private to one."""
    users: defaultdict[str, set[str]] = defaultdict(set)
    kept = []
    for member in members:
        said_by = users[member.content.strip().lower()]
        if len(said_by) < 2 and member.user_id not in said_by:
            said_by.add(member.user_id)
            kept.append(member)
    return kept


def _is_rejected(playbooks: Sequence[Learning], statements: int) -> bool:
    """Whether a person rejected the newest playbook of this cluster, and not much more was said since."""
    if not playbooks or playbooks[0].review is not PlaybookStatus.REJECTED:
        return False
    details = playbooks[0].details
    before: int = details.get("statements", len(details.get("source_windows", [])))
    return statements < PROPOSE_AGAIN * before
