"""The verbs of retrieval: search learnings or turns, search all kinds at once, and compose a context.

Without an embedder that answers in time, words decide alone and the answer says so.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Literal, Protocol

from reflexio.models.config import Config
from reflexio.models.interaction import Interaction
from reflexio.models.learning import Kind, Learning, PlaybookStatus, Scope
from reflexio.models.paging import Listing, Page, Position
from reflexio.models.search import (
    ContextItem,
    ContextRequest,
    ContextResponse,
    Explanation,
    HitPosition,
    SearchInteractionsRequest,
    SearchMode,
    UnifiedSearchRequest,
)
from reflexio.ports.storage import LearningFilter, QueryVector, Store, TurnFilter, Tx
from reflexio.retrieval import context
from reflexio.retrieval.calibration import Calibration
from reflexio.retrieval.filters import APPROVED, time_range
from reflexio.retrieval.fusion import Hit
from reflexio.retrieval.hit_pages import ROWS_AT_ONCE, HitPage, ReadRows, each_row
from reflexio.retrieval.query import QueryEmbedder
from reflexio.retrieval.search import Ranking, SearchableLearnings, SearchableTurns, SearchQuery, search

CONTEXT_POOL = 20
"""Learnings of each kind that compete for the room in a context."""
MOST_SOURCES = 20
"""User playbooks of an agent playbook whose turns are compared with the message."""
ALWAYS_POOL = 100
"""The newest learnings of each kind that always hold and compete for the room of their layer."""


class _SearchRequest(Protocol):
    """The fields that all search requests share."""

    @property
    def query(self) -> str | None: ...
    @property
    def search_mode(self) -> SearchMode: ...
    @property
    def top_k(self) -> int | None: ...
    @property
    def threshold(self) -> float | None: ...
    @property
    def start(self) -> int: ...


@dataclass(frozen=True)
class SearchHits:
    """Rows of one kind, best first, with the evidence for each."""

    rows: tuple[Any, ...] = ()
    hits: tuple[Hit, ...] = ()
    complete: bool = True
    next_cursor: str | None = None

    def explanations(self) -> list[Explanation]:
        if not self.hits:  # without a query there are rows, and no evidence for them
            return []
        return [
            Explanation(
                **_identify(row),
                score=round(hit.score, 4),
                words_rank=hit.words_rank,
                words_score=round(hit.words_score, 4) if hit.words_rank else None,
                vector_score=None if hit.vector_score is None else round(hit.vector_score, 4),
                why=hit.why,
            )
            for row, hit in zip(self.rows, self.hits, strict=True)
        ]


def _identify(row: Learning | Interaction) -> dict[str, str]:
    if isinstance(row, Interaction):
        return {"id": str(row.interaction_id), "kind": "interaction"}
    return {"id": row.public_id, "kind": row.kind.value}


def find_learnings(tx: Tx, where: LearningFilter, query: SearchQuery, start: int = 0) -> SearchHits:
    """Learnings for a query, from the hit at `start`; for an empty query, the newest."""
    if not query.text.strip():
        return _newest(lambda after: tx.learnings.page(where, Page(query.top_k, after)), query.top_k, start)
    return _load(search(SearchableLearnings(tx, where), query), tx.learnings.many, HitPage(start))


def _newest(read_page: Callable[[Position | None], Listing[Learning]], most: int, start: int) -> SearchHits:
    """Rows without a ranking: a page of a list, which ends where its bytes do."""
    listing, passed = read_page(None), 0
    while listing.end and passed + len(listing.rows) <= start:
        passed += len(listing.rows)
        listing = read_page(listing.end)
    rows = listing.rows[start - passed : most - passed]
    end = start + len(rows)
    return SearchHits(tuple(rows), next_cursor=HitPosition(end).cursor() if listing.end and end < most else None)


def _load(ranking: Ranking, read_rows: ReadRows, page: HitPage) -> SearchHits:
    rows, hits = page.take(ranking.hits, read_rows)
    return SearchHits(rows, hits, ranking.complete, page.next_cursor)


def _search_query(request: _SearchRequest, vector: QueryVector | None, calibration: Calibration) -> SearchQuery:
    mode, top_k = request.search_mode, request.top_k or 10
    return SearchQuery(request.query or "", vector, mode, top_k, request.threshold, calibration)


def _mode_used(request: _SearchRequest, vector: QueryVector | None) -> str:
    wants_vectors = request.search_mode is not SearchMode.FTS and bool((request.query or "").strip())
    return "fts" if wants_vectors and vector is None else str(request.search_mode)


async def search_learnings(
    store: Store, embedder: QueryEmbedder, where: LearningFilter, request: _SearchRequest
) -> tuple[SearchHits, str]:
    """The hits, and the search mode that was really used."""
    vector = await embedder.embed(request.query or "", request.search_mode)
    query = _search_query(request, vector, embedder.calibration)
    return await store.read(lambda tx: find_learnings(tx, where, query, request.start)), _mode_used(request, vector)


async def search_interactions(
    store: Store, embedder: QueryEmbedder, request: SearchInteractionsRequest
) -> tuple[SearchHits, str]:
    vector = await embedder.embed(request.query or "", request.search_mode)
    query = _search_query(request, vector, embedder.calibration)

    def read(tx: Tx) -> SearchHits:
        where = TurnFilter(request.user_id, request.request_id, time_range(request.start_time, request.end_time))
        if not query.text.strip():
            newest = tx.interactions.newest(where, min(query.top_k, request.most_recent_k or query.top_k))
            unranked = Ranking(tuple(Hit(turn_id, 0.0, None, 0.0, 0.0, None, 0.0) for turn_id in newest))
            return dataclasses.replace(_load(unranked, tx.interactions.many, HitPage(request.start)), hits=())
        if request.most_recent_k:
            where = dataclasses.replace(where, ids=tuple(tx.interactions.newest(where, request.most_recent_k)))
        return _load(search(SearchableTurns(tx, where), query), tx.interactions.many, HitPage(request.start))

    return await store.read(read), _mode_used(request, vector)


@dataclass(frozen=True)
class UnifiedHits:
    profiles: SearchHits = SearchHits()
    user_playbooks: SearchHits = SearchHits()
    agent_playbooks: SearchHits = SearchHits()
    next_cursor: str | None = None

    @property
    def complete(self) -> bool:
        return self.profiles.complete and self.user_playbooks.complete and self.agent_playbooks.complete


async def search_all_kinds(
    store: Store, embedder: QueryEmbedder, request: UnifiedSearchRequest, now: int
) -> tuple[UnifiedHits, str]:
    vector = await embedder.embed(request.query, request.search_mode)
    query = dataclasses.replace(_search_query(request, vector, embedder.calibration), top_k=request.top_k or 5)
    return await store.read(lambda tx: _find_all_kinds(tx, request, query, now)), _mode_used(request, vector)


def _find_all_kinds(tx: Tx, request: UnifiedSearchRequest, query: SearchQuery, now: int) -> UnifiedHits:
    """Facts about the user, what the user taught, and what a person approved for everybody.

    Without a user there are only the approved ones: what one user taught is private, unless the caller names it in
    `entity_types`.
    """
    kinds = request.entity_types or None
    has_user = request.user_id is not None
    tags = tuple(request.tags or ())
    both: dict[str, Any] = {"tags": tags, "source": request.source or None, "scope": request.scope}
    shared = {**both, "agent_version": request.agent_version, "name": request.playbook_name}
    profiles = user_playbooks = agent_playbooks = SearchHits()
    page, shown = HitPage(request.start), SharedPlaybooks()
    if kinds is None or "agent_playbooks" in kinds:
        allowed = tuple(request.agent_playbook_status_filter or APPROVED)
        where = LearningFilter(Kind.AGENT_PLAYBOOK, reviews=allowed, **shared)
        ranking = search(SearchableLearnings(tx, where), query)
        agent_playbooks = _load(ranking, tx.learnings.many, page)
        shown = SharedPlaybooks.of(ranking.hits, agent_playbooks.rows, tx.learnings.many)
    if has_user and (kinds is None or "profiles" in kinds):
        where = LearningFilter(Kind.PROFILE, user_id=request.user_id, alive_at=now, **both)
        profiles = _load(search(SearchableLearnings(tx, where), query), tx.learnings.many, page)
    if (has_user and kinds is None) or "user_playbooks" in (kinds or ()):
        where = LearningFilter(Kind.USER_PLAYBOOK, user_id=request.user_id, **shared)
        user_playbooks = _load(*_rank_not_covered(tx, where, query, shown), page)
    return UnifiedHits(profiles, user_playbooks, agent_playbooks, page.next_cursor)


@dataclass(frozen=True)
class SharedPlaybooks:
    """What the found agent playbooks were made of, and what they say."""

    covered: Set[int] = frozenset()
    texts: Set[str] = frozenset()

    @classmethod
    def of(cls, hits: Sequence[Hit], loaded: Sequence[Learning], read_rows: ReadRows) -> "SharedPlaybooks":
        """Reads those that are not loaded a few at a time: all of them together may be too much to hold."""
        known = {row.id for row in loaded}
        others = (row for _, _, row in each_row([hit for hit in hits if hit.id not in known], 0, read_rows))
        covered, texts = set[int](), set[str]()
        for playbook in chain(loaded, others):
            covered |= _covered_by([playbook])
            texts.add(playbook.text)
        return cls(covered, texts)


def _known_rows(rows: Mapping[int, Any], ids: Sequence[int]) -> dict[int, Any]:
    return {number: rows[number] for number in ids if number in rows}


def _rank_not_covered(
    tx: Tx, where: LearningFilter, query: SearchQuery, shown: SharedPlaybooks
) -> tuple[Ranking, ReadRows]:
    """User playbooks that no shown agent playbook was made of or repeats, searched until there are enough."""
    limit = query.top_k + len(shown.covered)
    while True:
        found = search(SearchableLearnings(tx, where), dataclasses.replace(query, top_k=limit))
        hits = [hit for hit in found.hits if hit.id not in shown.covered]
        read_rows: ReadRows = tx.learnings.many
        if len(hits) <= ROWS_AT_ONCE:  # nearly always: they are read once
            read_rows = partial(_known_rows, tx.learnings.many([hit.id for hit in hits]))
        hits = [hit for _, hit, row in each_row(hits, 0, read_rows) if row.text not in shown.texts]
        if len(hits) >= query.top_k or len(found.hits) < limit:
            return Ranking(tuple(hits[: query.top_k]), found.complete), read_rows
        limit *= 4


@dataclass(frozen=True)
class ComposedContext:
    """A context, and all learnings that competed for a place in it."""

    chosen: context.Context
    always: Sequence[Learning]
    ranked: Sequence[context.RankedLearning]
    calibration: Calibration
    is_degraded: bool


async def get_context(store: Store, embedder: QueryEmbedder, request: ContextRequest, now: int) -> ContextResponse:
    """The text to inject. Approved and current learnings only, unless the caller asks for pending ones."""
    composed = await compose_context(store, embedder, request, now)
    items = [_item(learning, "always") for learning in composed.chosen.always]
    items += [_item(learning, "relevant") for learning in composed.chosen.relevant]
    text, used = composed.chosen.text, composed.chosen.tokens
    return ContextResponse(context=text, items=items, tokens=used, degraded=composed.is_degraded)


async def compose_context(store: Store, embedder: QueryEmbedder, request: ContextRequest, now: int) -> ComposedContext:
    """What `get_context` returns, with everything that it chose from."""
    query = request.query or ""
    allowed = (PlaybookStatus.APPROVED, PlaybookStatus.PENDING) if request.include_pending else APPROVED
    wanted = _relevant_layer(request, allowed) if request.include_relevant and query.strip() else None
    vector = await embedder.embed(query, wanted.search_mode) if wanted else None

    def read(tx: Tx) -> tuple[list[Learning], UnifiedHits, dict[int, float], float]:
        always = _always_layer(tx, request, allowed, now) if request.include_always else []
        hits, cases = UnifiedHits(), dict[int, float]()
        if wanted:
            hits = _find_all_kinds(tx, wanted, _search_query(wanted, vector, embedder.calibration), now)
            cases = _nearest_cases(tx, [*hits.user_playbooks.rows, *hits.agent_playbooks.rows], vector)
        return always, hits, cases, Config.stored(tx.configs.get()).context_always_share

    always, hits, cases, configured_share = await store.read(read)
    share = configured_share if request.always_share is None else request.always_share
    ranked = [
        # A query without a word gives rows and no evidence for them.
        context.RankedLearning(row, hit, cases.get(row.id))
        for found in (hits.profiles, hits.user_playbooks, hits.agent_playbooks)
        for row, hit in zip(found.rows, found.hits, strict=bool(found.hits))
    ]
    composed = context.compose(
        ranked,
        request.max_tokens,
        query=query,
        calibration=embedder.calibration,
        always=always,
        always_tokens=int(request.max_tokens * share) if wanted else request.max_tokens,
    )
    is_degraded = wanted is not None and (_mode_used(wanted, vector) == "fts" or not hits.complete)
    return ComposedContext(composed, always, ranked, embedder.calibration, is_degraded)


def _nearest_cases(tx: Tx, playbooks: Sequence[Learning], vector: QueryVector | None) -> dict[int, float]:
    """For each playbook the cosine of the nearest turn that it was learned from."""
    if vector is None or not playbooks:
        return {}
    sources = {playbook.id: _source_playbooks(playbook) for playbook in playbooks}
    members = tx.learnings.many([number for numbers in sources.values() for number in numbers])
    turns = {
        playbook.id: [
            turn
            for row in (playbook, *(members[number] for number in sources[playbook.id] if number in members))
            for turn in row.details.get("source_interaction_ids") or ()
        ]
        for playbook in playbooks
    }
    cosines = tx.interactions.cosines(sorted({turn for ids in turns.values() for turn in ids}), vector)
    near = {playbook: [cosines[turn] for turn in ids if turn in cosines] for playbook, ids in turns.items()}
    return {playbook: max(of_turns) for playbook, of_turns in near.items() if of_turns}


def _source_playbooks(playbook: Learning) -> list[int]:
    windows = playbook.details.get("source_windows", [])
    return [int(window["user_playbook_id"]) for window in windows[:MOST_SOURCES]]


def _relevant_layer(request: ContextRequest, allowed: Sequence[PlaybookStatus]) -> UnifiedSearchRequest:
    """The search for what bears on the message."""
    return UnifiedSearchRequest(
        query=request.query or "",
        user_id=request.user_id,
        agent_version=request.agent_version,
        top_k=CONTEXT_POOL,
        agent_playbook_status_filter=list(allowed),
    )


def _item(learning: Learning, layer: Literal["always", "relevant"]) -> ContextItem:
    return ContextItem(kind=learning.kind.value, id=learning.public_id, layer=layer)


def _always_layer(tx: Tx, request: ContextRequest, allowed: Sequence[PlaybookStatus], now: int) -> list[Learning]:
    """What always holds for this user and for everybody. The agent playbook made of a user's rule replaces it."""
    scope = Scope.ALWAYS
    newest = Page(ALWAYS_POOL)
    where = LearningFilter(
        Kind.AGENT_PLAYBOOK, reviews=tuple(allowed), agent_version=request.agent_version, scope=scope
    )
    shared = list(tx.learnings.page(where, newest).rows)
    if request.user_id is None:
        return shared
    covered = _covered_by(shared)
    profiles = LearningFilter(Kind.PROFILE, user_id=request.user_id, scope=scope, alive_at=now)
    playbooks = LearningFilter(
        Kind.USER_PLAYBOOK, user_id=request.user_id, agent_version=request.agent_version, scope=scope
    )
    own = [row for row in tx.learnings.page(playbooks, newest).rows if row.id not in covered]
    return [*tx.learnings.page(profiles, newest).rows, *own, *shared]


def _covered_by(agent_playbooks: Sequence[Learning]) -> set[int]:
    """The user playbooks that these agent playbooks were made of."""
    windows = [window for playbook in agent_playbooks for window in playbook.details.get("source_windows", [])]
    return {int(window["user_playbook_id"]) for window in windows}
