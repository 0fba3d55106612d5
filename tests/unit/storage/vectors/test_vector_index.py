import threading

import numpy as np
import pytest
from numpy.typing import NDArray

from reflexio.errors import ProviderError
from reflexio.storage.vectors import index as module
from reflexio.storage.vectors.index import VectorIndex, sign_bits, single_precision

DIMENSIONS = 64
Rows = NDArray[np.float32]


def unit(rows: int, seed: int = 0, dimensions: int = DIMENSIONS) -> Rows:
    made = np.random.default_rng(seed).standard_normal((rows, dimensions)).astype(np.float32)
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True))


def filled(rows: int, users: int = 10) -> tuple[VectorIndex, Rows]:
    index, vectors = VectorIndex(DIMENSIONS), unit(rows)
    index.add(range(rows), [f"u{row % users}" for row in range(rows)], vectors)
    return index, vectors


def exact(vectors: Rows, query: Rows, k: int) -> list[int]:
    best: list[int] = np.argsort(-(vectors @ query), kind="stable")[:k].tolist()
    return best


@pytest.mark.parametrize("rows", [1, 255, 257, 1_000, 6_000])
def test_the_nearest_row_to_a_row_is_itself(rows: int) -> None:
    index, vectors = filled(rows)
    found = index.nearest(vectors[rows // 2], 1)
    assert found.ids.tolist() == [rows // 2]
    assert found.scores[0] == pytest.approx(1, abs=2e-3)


def test_among_many_the_first_pass_loses_nothing_that_matters() -> None:
    centres = unit(200, seed=1, dimensions=384)
    vectors = centres[np.arange(20_000) % 200] + unit(20_000, seed=2, dimensions=384)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    index = VectorIndex(384)
    index.add(range(20_000), ["a"] * 20_000, vectors)
    queries = vectors[:20] + unit(20, seed=5, dimensions=384) / 2
    hits = sum(len({*index.nearest(q, 10).ids.tolist()} & {*exact(vectors, q, 10)}) for q in queries)
    assert hits >= 0.99 * 200


def test_a_user_gets_exactly_their_own_nearest() -> None:
    index, vectors = filled(6_000)
    query = unit(1, seed=3)[0]
    found = index.nearest(query, 5, user="u3").ids.tolist()
    assert found == [10 * row + 3 for row in exact(vectors[3::10], query, 5)]
    assert len(index.nearest(query, 5, user="nobody")) == 0


def test_only_the_ids_named_are_searched() -> None:
    index, _ = filled(6_000)
    query = unit(1, seed=3)[0]
    named = [5, 17, 4_000, 999_999]
    assert set(index.nearest(query, 10, within=named).ids.tolist()) == {5, 17, 4_000}
    assert index.nearest(query, 10, within=np.array(named), user="u7").ids.tolist() == [17]
    assert index.nearest(query, 10, within=[]).ids.tolist() == []


def test_equals_come_by_age() -> None:
    index = VectorIndex(2)
    index.add([9, 3, 7], ["a"] * 3, [[1, 0]] * 3)
    assert index.nearest([1, 0], 3).ids.tolist() == [3, 7, 9]


@pytest.mark.parametrize("rows", [500, 6_000])
def test_a_replaced_row_is_found_where_it_is_now(rows: int) -> None:
    index, vectors = filled(rows)
    fresh = unit(1, seed=9)
    index.add([42], ["mover"], fresh)
    assert len(index) == rows
    assert index.nearest(fresh[0], 1).ids.tolist() == [42]
    assert index.nearest(fresh[0], rows, user="u2").ids.tolist().count(42) == 0
    assert index.nearest(fresh[0], 3, user="mover").ids.tolist() == [42]
    assert index.nearest(vectors[42], 1).ids.tolist() != [42]


def test_the_last_of_two_rows_with_one_id_stays() -> None:
    index = VectorIndex(2)
    index.add([1, 1], ["a", "b"], [[1, 0], [0, 1]])
    assert len(index) == 1
    assert index.nearest([0, 1], 5).scores.tolist() == [1.0]
    assert index.nearest([1, 0], 5, user="a").ids.tolist() == []


@pytest.mark.parametrize("rows", [500, 6_000])
def test_removed_rows_are_gone_and_unknown_ones_no_error(rows: int) -> None:
    index, vectors = filled(rows)
    index.remove([7, 8, 10**9])
    assert len(index) == rows - 2
    assert 7 not in index.nearest(vectors[7], 10).ids
    assert index.nearest(vectors[7], 10, within=[7]).ids.tolist() == []


def test_an_index_that_lost_most_rows_forgets_their_vectors() -> None:
    index, vectors = filled(6_000)
    index.remove(range(5_000))
    assert len(index) == 1_000
    assert index.nearest(vectors[5_500], 1, user="u0").ids.tolist() == [5_500]
    assert index._segments.used == 1_000


@pytest.mark.parametrize("rows", [1_000, 6_000])
def test_batches_go_on_until_every_row_was_given_once(rows: int) -> None:
    index, vectors = filled(rows)
    batches = list(index.batches(vectors[0], 10))
    given = np.concatenate([batch.ids for batch in batches])
    assert sorted(given.tolist()) == list(range(rows))
    assert len(batches) < 10
    assert all((np.diff(batch.scores) <= 0).all() for batch in batches)


def test_more_rows_may_be_asked_for_than_there_are() -> None:
    index, vectors = filled(20)
    assert len(index.nearest(vectors[0], 10_000)) == 20
    assert len(index.nearest(vectors[0], 0)) == 0
    assert len(VectorIndex(DIMENSIONS).nearest(vectors[0], 5)) == 0


@pytest.mark.parametrize(
    "bad",
    [[[1.0, float("nan")]], [[1.0, float("inf")]], [[1.0, 1e9]], [[1.0]], [[1.0, 0.0, 0.0]], [1.0, 0.0]],
)
def test_vectors_that_cannot_be_compared_are_refused_whole(bad: list[list[float]]) -> None:
    index = VectorIndex(2)
    with pytest.raises(ProviderError):
        index.add([1, 2][: len(bad)], ["a", "b"][: len(bad)], bad)
    assert len(index) == 0


def test_a_query_that_cannot_be_compared_is_refused() -> None:
    index = VectorIndex(2)
    for bad in ([float("nan"), 0.0], [1.0], []):
        with pytest.raises(ProviderError):
            index.nearest(bad, 1)


def test_dimensions_need_not_fill_whole_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SCORED_COMPLETELY", 0)
    index, vectors = VectorIndex(100), unit(500, dimensions=100)
    index.add(range(500), ["a"] * 500, vectors)
    assert index.nearest(vectors[3], 10).ids.tolist() == exact(vectors, vectors[3], 10)


def test_readers_see_each_row_once_while_one_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SCORED_COMPLETELY", 100)
    index, vectors = filled(500)
    done, failures = threading.Event(), []

    def read() -> None:
        while not done.is_set():
            for found in (index.nearest(vectors[1], 50), index.nearest(vectors[1], 50, user="u1")):
                ids = found.ids.tolist()
                if len(set(ids)) < len(ids) or ids[:1] != [1]:
                    failures.append(ids)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for turn in range(60):
        rows = [row for row in range(500) if row % 10 == turn % 10 or row == 1]
        index.add(rows, [f"u{row % 10}" for row in rows], vectors[rows])
        index.add(range(1_000, 1_400), ["new"] * 400, unit(400, seed=turn))
        index.remove(range(1_000, 1_400))
    done.set()
    for reader in readers:
        reader.join()
    assert failures == []


def test_half_precision_is_widened_exactly() -> None:
    every = np.arange(65_536, dtype=np.uint16).view(np.float16)
    finite = every[np.isfinite(every)]
    assert np.array_equal(single_precision(finite), finite.astype(np.float32))


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_bits_are_set_where_numbers_are_above_zero(kind: type) -> None:
    row: NDArray[np.floating] = np.array([0.0, -0.0, 1e-7, -1e-7, 0.5, -0.5, 3.0, -3.0], kind)
    bits = np.unpackbits(sign_bits(row[None, :]).view(np.uint8))[:8]
    assert bits.tolist() == (row > 0).astype(int).tolist()
