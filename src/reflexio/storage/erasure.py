"""The registry of erasure: which rows of every table are a user's, and what the erasure of the user does to them.

A test compares it with the tables of a real database. `of_user` finds rows by indexes while the user's turns and
learnings are still there; `leftovers` reads whole tables afterwards, to prove that nothing was forgotten.
"""

import json
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    TableClause,
    and_,
    column,
    delete,
    exists,
    false,
    func,
    insert,
    or_,
    select,
    table,
    tuple_,
    update,
)

from reflexio.models.learning import Kind
from reflexio.ports.storage import UnfinishedErasure
from reflexio.storage import schema
from reflexio.storage.fulltext.terms import TermScope
from reflexio.storage.queries import OrganisationRows, attributes, json_field

Condition = Callable[[str, str], ColumnElement[bool]]
"""From an organisation and a user to a condition on the rows of a table."""
TURN = "interaction"
REMOVED_ROWS = 500
"""Of each table in one write, which every other writer waits for."""
PLACES = tuple(
    (rows, rows.c[name])
    for rows, names in (
        (schema.requests, ("agent_version", "source")),
        (schema.learnings, ("agent_version", "source", "name")),
    )
    for name in names
)
"""Columns of names that publishers choose, and that one user alone may have."""
WORDS = [table(f"{entity}_words", column("user_scope")) for entity in schema.FULLTEXT_ENTITIES]
SIZES = [table(f"{entity}_words_size", column("scope")) for entity in schema.FULLTEXT_ENTITIES]
SHADOW_TABLES = tuple(
    f"{entity}_words_fts{suffix}"
    for entity in schema.FULLTEXT_ENTITIES
    for suffix in ("", "_config", "_data", "_docsize", "_idx")
)
"""Of FTS5: digests of words and scopes, never a word. It drops those of deleted rows when it next merges."""


@dataclass(frozen=True, slots=True)
class ErasureRule:
    """What becomes of one table when a user is erased. Without conditions, nothing in it belongs to one user."""

    table: TableClause
    effect: str
    of_user: Condition | None = None
    leftovers: Condition | None = None
    is_removed_apart: bool = False
    """Not by its condition: together with words and vectors, or by changing rows."""


def _texts(values: Mapping[str, Any]) -> set[str]:
    """The texts among the values, also those in lists."""
    lists = [value if isinstance(value, list) else [value] for value in values.values()]
    return {value for items in lists for value in items if isinstance(value, str)}


def _by_user(rows: Any) -> Condition:
    return lambda org, user: and_(rows.c.org_id == org, rows.c.user_id == user)


def _without(rows: Any, other: Any, **columns: str) -> Condition:
    """Rows whose row in another table is gone. `columns` maps columns of that table to columns of these rows."""

    def condition(org: str, user: str) -> ColumnElement[bool]:
        same = [other.c[theirs] == rows.c[ours] for theirs, ours in columns.items()]
        return and_(rows.c.org_id == org, ~exists().where(other.c.org_id == org, *same))

    return condition


def _learnings(org: str, user: str) -> Any:
    return select(schema.learnings.c.id).where(_by_user(schema.learnings)(org, user))


def _turns(org: str, user: str) -> Any:
    return select(schema.interactions.c.id).where(_by_user(schema.interactions)(org, user))


def _beside_rows(rows: Any) -> Condition:
    """Rows that belong to a turn or a learning of the user."""

    def condition(org: str, user: str) -> ColumnElement[bool]:
        kinds = [kind.value for kind in Kind]
        of_turns = and_(rows.c.kind == TURN, rows.c.row_id.in_(_turns(org, user)))
        of_learnings = and_(rows.c.kind.in_(kinds), rows.c.row_id.in_(_learnings(org, user)))
        return and_(rows.c.org_id == org, or_(of_turns, of_learnings))

    return condition


def _beside_nothing(rows: Any) -> Condition:
    """Rows whose turn or learning is gone."""

    def condition(org: str, user: str) -> ColumnElement[bool]:
        turn = exists().where(schema.interactions.c.id == rows.c.row_id)
        learning = exists().where(schema.learnings.c.id == rows.c.row_id)
        gone = or_(and_(rows.c.kind == TURN, ~turn), and_(rows.c.kind != TURN, ~learning))
        return and_(rows.c.org_id == org, gone)

    return condition


def _vectors_left(org: str, user: str) -> ColumnElement[bool]:
    # A removed vector leaves a numbered row without vector and user, which tells copies in memory to drop it.
    named = _by_user(schema.vectors)(org, user)
    return or_(named, and_(schema.vectors.c.vector.is_not(None), _beside_nothing(schema.vectors)(org, user)))


def _in_lane_of_reruns(org: str) -> ColumnElement[bool]:
    jobs = schema.jobs.c
    in_lane = jobs.lane.startswith(f"rerun:{org}/", autoescape=True)
    return and_(in_lane, json_field(jobs.data, "org_id") == org)


def _jobs_of_user(org: str, user: str) -> ColumnElement[bool]:
    jobs = schema.jobs.c
    in_lane = jobs.lane == f"{org}/{user}"
    of_windows = and_(in_lane, json_field(jobs.data, "org_id") == org, json_field(jobs.data, "user_id") == user)
    return or_(of_windows, and_(_in_lane_of_reruns(org), json_field(jobs.data, "scope.user_id") == user))


def _answers_of_user(org: str, user: str) -> ColumnElement[bool]:
    return schema.job_answers.c.key.in_(select(schema.jobs.c.key).where(_jobs_of_user(org, user)))


def _answers_left(org: str, user: str) -> ColumnElement[bool]:
    return ~exists().where(schema.jobs.c.key == schema.job_answers.c.key)


def _operations_of_user(org: str, user: str) -> ColumnElement[bool]:
    operations = schema.operations.c
    asked = json_field(operations.params, "user_id") == user
    return and_(operations.org_id == org, or_(operations.current_user_id == user, asked))


def _optimisations_of_user(org: str, user: str) -> ColumnElement[bool]:
    jobs = schema.optimisation_jobs.c
    return and_(jobs.org_id == org, jobs.target_kind == "user_playbook", jobs.target_id.in_(_learnings(org, user)))


def _in_optimisations_of_user(rows: Any) -> Condition:
    def condition(org: str, user: str) -> ColumnElement[bool]:
        own = select(schema.optimisation_jobs.c.id).where(_optimisations_of_user(org, user))
        return and_(rows.c.org_id == org, rows.c.job_id.in_(own))

    return condition


def _either(*conditions: Condition) -> Condition:
    return lambda org, user: or_(*(condition(org, user) for condition in conditions))


def _nothing(org: str, user: str) -> ColumnElement[bool]:
    return false()


def _without_members(org: str, user: str) -> ColumnElement[bool]:
    clusters, learnings = schema.clusters.c, schema.learnings.c
    pool = (learnings.agent_version == clusters.agent_version, learnings.name == clusters.name)
    member = exists().where(learnings.org_id == org, *pool, learnings.cluster == clusters.number)
    return and_(clusters.org_id == org, ~member)


def _scopes(org: str, user: str) -> list[str]:
    return [TermScope.of(org, kind, user).narrowest for kind in (TURN, *(kind.value for kind in Kind))]


def _in_scopes(scope: ColumnElement[str]) -> Condition:
    return lambda org, user: scope.in_(_scopes(org, user))


def _part_of_optimisation(rows: Any, effect: str, *, is_named: bool = False) -> ErasureRule:
    own: tuple[Condition, ...] = (_by_user(rows),) if is_named else ()
    of_user = _either(_in_optimisations_of_user(rows), *own)
    return ErasureRule(rows, effect, of_user, _either(_without(rows, schema.optimisation_jobs, id="job_id"), *own))


def _rule_by_user(rows: Any, *, is_removed_apart: bool = False, effect: str = "") -> ErasureRule:
    condition = _by_user(rows)
    return ErasureRule(rows, effect or "the user's rows are deleted", condition, condition, is_removed_apart)


POOLS = _without(schema.pools, schema.learnings, agent_version="agent_version", name="name")
RULES = (
    # What is found through turns and learnings goes before them.
    _part_of_optimisation(
        schema.optimisation_candidates,
        "deleted with their job; other jobs that replayed the user lose the wordings that were not adopted",
    ),
    _part_of_optimisation(schema.optimisation_events, "deleted with their job, and in jobs that replayed the user"),
    _part_of_optimisation(
        schema.optimisation_evaluations, "deleted with their job, and where the user was replayed", is_named=True
    ),
    ErasureRule(
        schema.optimisation_jobs, "jobs about the user's playbooks are deleted", _optimisations_of_user, _nothing
    ),
    ErasureRule(schema.job_answers, "deleted with the user's jobs", _answers_of_user, _answers_left),
    ErasureRule(schema.jobs, "those of the user are deleted; ended ones name nobody", _jobs_of_user, _jobs_of_user),
    ErasureRule(
        schema.operations,
        "kept with their counts; they no longer name the user",
        _operations_of_user,
        _operations_of_user,
        is_removed_apart=True,
    ),
    _rule_by_user(schema.outcomes),
    _rule_by_user(schema.windows),
    _rule_by_user(schema.finished_steps),
    _rule_by_user(schema.receipts),
    _rule_by_user(schema.users),
    ErasureRule(
        schema.lineage,
        "deleted with each learning",
        lambda org, user: and_(schema.lineage.c.org_id == org, schema.lineage.c.learning_id.in_(_learnings(org, user))),
        _without(schema.lineage, schema.learnings, id="learning_id"),
        is_removed_apart=True,
    ),
    ErasureRule(
        schema.vectors, "deleted with each row", _beside_rows(schema.vectors), _vectors_left, is_removed_apart=True
    ),
    ErasureRule(
        schema.unembedded,
        "deleted with each row that waits",
        _beside_rows(schema.unembedded),
        _beside_nothing(schema.unembedded),
        is_removed_apart=True,
    ),
    *(
        ErasureRule(
            words, "deleted with each row", condition := _in_scopes(words.c.user_scope), condition,
            is_removed_apart=True,
        )
        for words in WORDS
    ),
    *(
        ErasureRule(
            sizes, "deleted with the last row of the user", condition := _in_scopes(sizes.c.scope), condition,
            is_removed_apart=True,
        )
        for sizes in SIZES
    ),
    _rule_by_user(schema.exposures, is_removed_apart=True, effect="deleted with each turn"),
    _rule_by_user(schema.interactions, is_removed_apart=True),
    _rule_by_user(schema.requests, is_removed_apart=True),
    _rule_by_user(
        schema.learnings,
        is_removed_apart=True,
        effect="profiles and user playbooks of the user are deleted; agent playbooks lose the user's turns and the "
        "quoted words, and are deleted when nobody supports them and no person approved them",
    ),
    ErasureRule(schema.clusters, "clusters without members are deleted", _nothing, _without_members),
    ErasureRule(schema.pools, "pools without playbooks are deleted", _nothing, POOLS),
    ErasureRule(schema.index_counts, "kept: counts of all organisations together"),
    ErasureRule(schema.leases, "kept: which worker runs the schedules"),
    ErasureRule(schema.keys, "kept: labels of the operator, and digests of tokens"),
    ErasureRule(schema.configs, "kept: the organisation's settings"),
    ErasureRule(schema.stalls, "kept until the provider works again: the provider's message"),
    ErasureRule(schema.spend, "kept: sums by day, operation and model"),
    _rule_by_user(
        schema.unfinished_erasures,
        is_removed_apart=True,
        effect="deleted with the user's last rows: until then the erasure goes on after a crash",
    ),
    ErasureRule(schema.erasures, "kept: digests of receipts, which name nobody"),
)  # fmt: skip


class SqlErasures(OrganisationRows):
    """Counts and removes what belongs to one user, table by table, and remembers receipts."""

    def begin(self, erasure: UnfinishedErasure) -> UnfinishedErasure:
        for earlier in self._unfinished(_by_user(schema.unfinished_erasures)(self._org, erasure.user_id)):
            return earlier
        progress = {"tables": dict(erasure.tables), "rows": dict(erasure.rows), "names": sorted(erasure.names)}
        row = {"org_id": self._org, "progress": progress}
        row |= attributes(erasure, ("user_id", "withdraw_unsupported", "started_at"))
        self._connection.execute(insert(schema.unfinished_erasures), row)
        return erasure

    def unfinished(self) -> list[UnfinishedErasure]:
        return self._unfinished(schema.unfinished_erasures.c.org_id == self._org)

    def _unfinished(self, which: ColumnElement[bool]) -> list[UnfinishedErasure]:
        rows = self._connection.execute(select(schema.unfinished_erasures).where(which))
        return [
            UnfinishedErasure(
                **attributes(row, ("user_id", "withdraw_unsupported", "started_at")),
                **{**row.progress, "names": frozenset(row.progress["names"])},
            )
            for row in rows
        ]

    def count(self, user_id: str) -> dict[str, int]:
        counted = (rule for rule in RULES if rule.table is not schema.unfinished_erasures)
        return {str(rule.table.name): self._rows_of(rule, rule.of_user, user_id) for rule in counted if rule.of_user}

    def leftovers(self, user_id: str) -> dict[str, int]:
        return {rule.table.name: self._rows_of(rule, rule.leftovers, user_id) for rule in RULES if rule.leftovers}

    def unfinished_jobs(self, user_id: str) -> list[str]:
        unfinished = schema.jobs.c.state.in_(("queued", "running"))
        return self._scalars(select(schema.jobs.c.key).where(_jobs_of_user(self._org, user_id), unfinished))

    def remove_some(self, user_id: str) -> int:
        self._blank_optimisations(user_id)
        self._forget_in_reruns(user_id)
        self._forget_in_operations(user_id)
        return sum(
            self._remove_first(rule.table, rule.of_user(self._org, user_id))
            for rule in RULES
            if rule.of_user and not rule.is_removed_apart
        )

    def _remove_first(self, rows: Any, which: ColumnElement[bool]) -> int:
        key = list(rows.primary_key)
        first = select(*key).where(which).limit(REMOVED_ROWS)
        return self._change(delete(rows).where(tuple_(*key).in_(first)))

    def end(self, user_id: str) -> None:
        rows = schema.unfinished_erasures
        self._change(delete(rows).where(_by_user(rows)(self._org, user_id)))

    def names(self, user_id: str) -> set[str]:
        queries = [select(place).where(_by_user(rows)(self._org, user_id)).distinct() for rows, place in PLACES]
        return {str(name) for query in queries for name in self._scalars(query) if name}

    def remove_unused_names(self, names: Set[str]) -> None:
        operations = schema.operations.c
        query = select(operations.seq, operations.params).where(operations.org_id == self._org)
        params: dict[int, dict[str, Any]] = {seq: values for seq, values in self._connection.execute(query)}  # noqa: C416
        mentioned = {name for values in params.values() for name in names & _texts(values)}
        unused = {name for name in mentioned if not self._is_used(name)}
        for seq, values in params.items():
            if unused & _texts(values):
                rest = {name: value for name, value in values.items() if unused.isdisjoint(_texts({name: value}))}
                self._change(update(schema.operations).where(operations.seq == seq).values(params=rest))

    def _is_used(self, name: str) -> bool:
        queries = [
            select(rows.c.id).where(rows.c.org_id == self._org, place == name).limit(1) for rows, place in PLACES
        ]
        return any(self._scalars(query) for query in queries)

    def remove_empty_pools(self) -> None:
        self._change(delete(schema.clusters).where(_without_members(self._org, "")))
        self._change(delete(schema.pools).where(POOLS(self._org, "")))

    def add_receipt(self, digest: str, now: int) -> None:
        row = {"org_id": self._org, "digest": digest, "created_at": now}
        self._connection.execute(insert(schema.erasures), row)

    def has_receipt(self, digest: str) -> bool:
        erasures = schema.erasures.c
        return self._count(schema.erasures, erasures.org_id == self._org, erasures.digest == digest) > 0

    def _rows_of(self, rule: ErasureRule, condition: Condition | None, user_id: str) -> int:
        where = (condition or _nothing)(self._org, user_id)
        return int(self._connection.execute(select(func.count()).select_from(rule.table).where(where)).scalar_one())

    def _forget_in_operations(self, user_id: str) -> None:
        operations = schema.operations.c
        named = select(operations.seq, operations.params).where(_operations_of_user(self._org, user_id))
        for seq, params in self._connection.execute(named).all():
            rest = {name: value for name, value in params.items() if value != user_id}
            change = update(schema.operations).where(operations.seq == seq)
            self._change(change.values(params=rest, current_user_id=""))

    def _blank_optimisations(self, user_id: str) -> None:
        """Wordings and events of a job that replayed the user were made of the user's words, among others'."""
        evaluations, candidates = schema.optimisation_evaluations.c, schema.optimisation_candidates.c
        replayed = select(evaluations.job_id).where(_by_user(schema.optimisation_evaluations)(self._org, user_id))
        tried = and_(candidates.org_id == self._org, candidates.job_id.in_(replayed))
        # The first is the incumbent, and an adopted winner is a playbook: both live on in the learnings.
        rejected = and_(tried, candidates.place > 0, ~candidates.is_winner)
        self._change(update(schema.optimisation_candidates).where(rejected).values(content=""))
        events = schema.optimisation_events.c
        self._change(delete(schema.optimisation_events).where(events.org_id == self._org, events.job_id.in_(replayed)))

    def _forget_in_reruns(self, user_id: str) -> None:
        """Removes the user from unfinished reruns of several users: from the plan, and the user's own steps."""
        answers = schema.job_answers.c
        keys = select(schema.jobs.c.key).where(_in_lane_of_reruns(self._org))
        plans = select(answers.key, answers.answer).where(answers.key.in_(keys), answers.step == "users")
        for key, answer in self._connection.execute(plans).all():
            users = json.loads(answer)["users"]
            if user_id not in users:
                continue
            place = users.index(user_id)
            users[place] = ""  # the steps of the others keep their numbers
            own = answers.step.startswith(f"{place}/", autoescape=True)
            self._change(delete(schema.job_answers).where(answers.key == key, own))
            plan = update(schema.job_answers).where(answers.key == key, answers.step == "users")
            self._change(plan.values(answer=json.dumps({"users": users}, separators=(",", ":"))))
