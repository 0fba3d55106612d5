"""What every storage backend promises about searches for better wording."""

from reflexio.models.optimisation import OptimizationEstimate, PlaybookOptimizationEvent, PlaybookOptimizationJob
from reflexio.models.paging import Page
from reflexio.ports.storage import Database, Store, StoredCandidate, StoredEvaluation, Tx


def job(target: int = 1, **changes: object) -> PlaybookOptimizationJob:
    values = {"target_kind": "agent_playbook", "target_id": target, "created_at": 100, **changes}
    return PlaybookOptimizationJob.model_validate(values)


async def added(store: Store, *jobs: PlaybookOptimizationJob) -> list[PlaybookOptimizationJob]:
    return await store.write(lambda tx: [tx.optimisations.add(each) for each in jobs])


async def test_a_job_comes_back_as_it_was_and_as_it_became(store: Store) -> None:
    made = job(seed=7, estimate=OptimizationEstimate(judge_calls=3), incumbent_content="ü", best_score=0.5)
    (kept,) = await added(store, made)
    assert kept == made.changed(job_id=kept.job_id)
    assert await store.read(lambda tx: tx.optimisations.get(kept.job_id)) == kept
    ended = kept.ended("completed", "it won", 200, successor_target_id=9)
    await store.write(lambda tx: tx.optimisations.put(ended))
    assert await store.read(lambda tx: tx.optimisations.get(kept.job_id)) == ended
    assert await store.read(lambda tx: tx.optimisations.get(99)) is None


async def test_jobs_are_listed_newest_first_page_by_page(store: Store) -> None:
    made = await added(store, *(job(created_at=100 + number) for number in range(3)))
    first = await store.read(lambda tx: tx.optimisations.page(Page(2)))
    rest = await store.read(lambda tx: tx.optimisations.page(Page(2, first.end)))
    assert [each.job_id for each in (*first.rows, *rest.rows)] == [each.job_id for each in reversed(made)]


async def test_jobs_of_a_playbook_and_those_under_way(store: Store) -> None:
    made = await added(store, job(1), job(2, status="running"), job(1, status="failed"))
    of_one = await store.read(lambda tx: tx.optimisations.of_target("agent_playbook", 1, 5))
    assert [each.job_id for each in of_one] == [made[2].job_id, made[0].job_id]
    assert len(await store.read(lambda tx: tx.optimisations.of_target("agent_playbook", 1, 1))) == 1
    assert await store.read(lambda tx: tx.optimisations.of_target("user_playbook", 1, 5)) == []
    assert await store.read(lambda tx: tx.optimisations.unfinished()) == made[:2]


def fill(tx: Tx, job_id: int) -> None:
    tx.optimisations.keep_wordings(job_id, [StoredCandidate(0, "old"), StoredCandidate(1, "new", (0,))])
    tx.optimisations.keep_evaluations(
        job_id, [StoredEvaluation(1, "s", "ann", {"score": 1}), StoredEvaluation(1, "t", "bob", {})]
    )
    tx.optimisations.keep_events(
        job_id, [PlaybookOptimizationEvent(event_id=1, event_type="start", payload={"a": [1]})]
    )


async def test_what_is_kept_twice_is_there_once(store: Store) -> None:
    (made,) = await added(store, job())
    await store.write(lambda tx: fill(tx, made.job_id))
    await store.write(lambda tx: fill(tx, made.job_id))
    scored = StoredCandidate(1, "new", (0,), 0.9, is_winner=True)
    await store.write(lambda tx: tx.optimisations.keep_wordings(made.job_id, [scored]))

    def look(tx: Tx) -> tuple[list[StoredCandidate], list[StoredEvaluation], list[PlaybookOptimizationEvent]]:
        kept = tx.optimisations
        return kept.wordings(made.job_id), kept.evaluations(made.job_id), kept.events(made.job_id)

    wordings, evaluations, events = await store.read(look)
    assert [(each.place, each.content, each.parents, each.score, each.is_winner) for each in wordings] == [
        (0, "old", (), None, False),
        (1, "new", (0,), 0.9, True),
    ]
    assert [(each.scene, each.user_id) for each in evaluations] == [("s", "ann"), ("t", "bob")]
    assert [(each.event_id, each.event_type, each.payload) for each in events] == [(1, "start", {"a": [1]})]


async def test_what_was_tried_with_a_user_can_be_forgotten(store: Store) -> None:
    (made,) = await added(store, job())
    await store.write(lambda tx: fill(tx, made.job_id))
    await store.write(lambda tx: tx.erasures.remove_some("ann"))
    left = await store.read(lambda tx: tx.optimisations.evaluations(made.job_id))
    assert [each.user_id for each in left] == ["bob"]


async def test_old_jobs_go_with_all_of_theirs_and_those_under_way_stay(store: Store) -> None:
    made = await added(store, job(status="running"), job(status="failed"), job(status="skipped"))
    await store.write(lambda tx: fill(tx, made[1].job_id))
    assert await store.write(lambda tx: tx.optimisations.trim(1)) == 1
    left = await store.read(lambda tx: tx.optimisations.page(Page(10)))
    assert {each.job_id for each in left.rows} == {made[0].job_id, made[2].job_id}
    assert await store.read(lambda tx: tx.optimisations.evaluations(made[1].job_id)) == []


async def test_nobody_sees_the_jobs_of_another(store: Store, database: Database) -> None:
    (made,) = await added(store, job())
    await store.write(lambda tx: fill(tx, made.job_id))
    other = database.of("other")
    assert await other.read(lambda tx: tx.optimisations.get(made.job_id)) is None
    assert await other.read(lambda tx: tx.optimisations.wordings(made.job_id)) == []
    assert await other.read(lambda tx: tx.optimisations.unfinished()) == []


async def test_who_has_a_configuration_is_known(store: Store, database: Database) -> None:
    assert await database.configured() == []
    await store.write(lambda tx: tx.configs.put("{}", 1))
    assert await database.configured() == ["acme"]
