"""What every storage backend promises about which learnings were in which prompts."""

import pytest

from reflexio.models.interaction import InteractionData, RetrievedLearning
from reflexio.models.learning import Kind, Learning
from reflexio.ports.storage import Database, LearningFilter, RequestFilter, Store
from reflexio.retrieval.embedding_backlog import index_rows
from tests.builders import request
from tests.contract.test_storage import add


def answer(*ids: str, kind: str = "user_playbook") -> InteractionData:
    shown = [RetrievedLearning.model_validate({"kind": kind, "learning_id": public_id}) for public_id in ids]
    return InteractionData(role="Agent", content="Yes.", retrieved_learnings=shown)


async def counts(store: Store, *ids: str, kind: Kind = Kind.USER_PLAYBOOK, most: int = 100) -> dict[str, int]:
    return await store.read(lambda tx: tx.exposures.counts(kind, ids, most))


async def test_each_turn_counts_once_for_each_learning_in_its_prompt(store: Store, database: Database) -> None:
    await add(store, request(), [answer("1", "2", "1"), answer("1"), answer("1", kind="agent_playbook")])
    await add(store, request(), [InteractionData(role="Agent", retrieved_learnings=answer("1").retrieved_learnings)])
    await index_rows(database, 100)
    assert await counts(store, "1", "2", "3") == {"1": 3, "2": 1}
    assert await counts(store, "1", kind=Kind.AGENT_PLAYBOOK) == {"1": 1}
    assert await counts(store, "1", most=2) == {"1": 2}
    newest = await store.read(lambda tx: tx.exposures.newest(Kind.USER_PLAYBOOK, "1", 2))
    assert newest == sorted(newest, reverse=True)
    assert len(newest) == 2


async def test_deleted_turns_and_learnings_are_not_counted(store: Store, database: Database) -> None:
    playbook = Learning(Kind.USER_PLAYBOOK, "Ask first", user_id="ann")
    (number,) = await store.write(lambda tx: tx.learnings.add([playbook]))
    await add(store, request(user_id="ann"), [answer(str(number))])
    await add(store, request(user_id="bob"), [answer(str(number))])
    await index_rows(database, 100)
    assert await counts(store, str(number)) == {str(number): 2}
    await store.write(lambda tx: tx.requests.remove_some(RequestFilter(user_id="bob")))
    assert await counts(store, str(number)) == {str(number): 1}
    await store.write(lambda tx: tx.learnings.remove(LearningFilter(Kind.USER_PLAYBOOK, ids=(number,))))
    assert await counts(store, str(number)) == {}


@pytest.mark.parametrize("org", ["another"])
async def test_other_organisations_do_not_count(store: Store, database: Database, org: str) -> None:
    await add(store, request(), [answer("1")])
    await index_rows(database, 100)
    assert await counts(database.of(org), "1") == {}
