"""Grouping by vectors: made-up matters, each a direction, and rows around them."""

import numpy as np
import pytest
from numpy.typing import NDArray

from reflexio.aggregation.clustering import Vectors, centroids, group, join

Numbers = NDArray[np.int64]


def unit(rows: NDArray[np.floating]) -> Vectors:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def around(matters: int, each: int, *, noise: float = 0.6, seed: int = 7) -> tuple[Vectors, Numbers]:
    """Rows of some matters, shuffled, and the matter of each."""
    chance = np.random.default_rng(seed)
    middles = np.linalg.qr(chance.standard_normal((64, 64)))[0][:matters]
    truth = chance.permutation(np.repeat(np.arange(matters), each))
    return unit(middles[truth] + noise * chance.standard_normal((len(truth), 64)) / 8), truth


def alike(rows: Vectors, much: float) -> Vectors:
    """The rows with something in common: a cosine of 0 becomes one of much² / (1 + much²)."""
    return unit(np.hstack([rows, np.full((len(rows), 1), much)]))


def same(one: Numbers, other: Numbers) -> bool:
    """Whether two labellings are one partition."""
    pairs = len(set(zip(one.tolist(), other.tolist(), strict=True)))
    return pairs == len(set(one.tolist())) == len(set(other.tolist()))


@pytest.mark.parametrize(("matters", "each"), [(3, 4), (10, 4), (10, 20), (60, 10)])
def test_rows_of_one_matter_are_one_group(matters: int, each: int) -> None:
    rows, truth = around(matters, each)
    assert same(group(rows).labels, truth)


def test_labels_are_numbered_by_first_appearance() -> None:
    labels = group(around(5, 5)[0]).labels
    _, first = np.unique(labels, return_index=True)
    assert labels[np.sort(first)].tolist() == [0, 1, 2, 3, 4]


def test_the_order_of_the_rows_does_not_matter() -> None:
    rows, _ = around(40, 12, noise=1.4)
    shuffled = np.random.default_rng(1).permutation(len(rows))
    straight, turned = group(rows), group(rows[shuffled])
    assert straight.similarity == turned.similarity
    assert same(straight.labels[shuffled], turned.labels)


def test_the_same_rows_give_the_same_groups_however_many_there_are() -> None:
    rows, _ = around(20, 150, noise=0.7)
    few = group(rows[:49])
    for count in (50, 200, 2048, 2049, 3000):
        more = group(rows[:count])
        assert more.similarity == pytest.approx(few.similarity, abs=0.04)
        assert same(more.labels[:49], few.labels)


def test_rows_in_many_regions_are_grouped_as_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, _ = around(60, 25, noise=0.8)
    together = group(rows).labels
    monkeypatch.setattr("reflexio.aggregation.linkage.REGION", 32)
    monkeypatch.setattr("reflexio.aggregation.linkage.NEAREST_REGIONS", 12)
    assert same(group(rows).labels, together)


def test_narrow_corpora_are_cut_higher_than_broad_ones() -> None:
    broad, _ = around(20, 10, noise=0.6)
    narrow = alike(broad, 0.5)
    assert group(narrow).similarity > group(broad).similarity + 0.05
    assert same(group(narrow).labels, group(broad).labels)


def test_an_embedder_that_holds_all_texts_alike_is_seen_through() -> None:
    rows, truth = around(20, 10, noise=0.6)
    assert same(group(alike(rows, 2.0), unrelated=0.8).labels, truth)


def test_all_on_one_matter_is_one_group() -> None:
    assert group(around(1, 12, noise=0.5)[0]).labels.max() == 0


def test_a_very_popular_matter_is_one_group_too() -> None:
    assert group(around(1, 3000, noise=0.8)[0]).labels.max() == 0


def test_rows_that_have_nothing_in_common_stay_alone() -> None:
    rows = unit(np.random.default_rng(3).standard_normal((300, 384)))
    assert group(rows).labels.tolist() == list(range(300))


def test_what_is_asked_for_is_the_similarity() -> None:
    rows, _ = around(6, 6)
    none, all_of_them = group(rows, similarity=1.1), group(rows, similarity=-1.0)
    assert (none.similarity, none.labels.tolist()) == (1.1, list(range(36)))
    assert (all_of_them.similarity, all_of_them.labels.tolist()) == (-1.0, [0] * 36)


@pytest.mark.parametrize("count", [0, 1])
def test_of_no_row_or_one_there_is_no_pair(count: int) -> None:
    assert group(np.eye(8, dtype=np.float32)[:count]).labels.tolist() == [0][:count]


def test_equal_rows_are_one_group() -> None:
    rows = np.repeat(np.eye(8, dtype=np.float32)[:2], 1000, axis=0)
    assert group(rows).labels.tolist() == [0] * 1000 + [1] * 1000


def test_a_row_that_is_no_number_is_named() -> None:
    rows, _ = around(2, 2)
    rows[2, 5] = np.nan
    with pytest.raises(ValueError, match="row 2"):
        group(rows)


def test_the_opposed_are_in_no_group_together() -> None:
    rows, truth = around(2, 6, noise=0.3)
    noes = {int(np.flatnonzero(truth == 0)[0]), int(np.flatnonzero(truth == 0)[3])}
    contradict = lambda one, other: truth[one] == truth[other] == 0 and (one in noes) != (other in noes)  # noqa: E731
    expected = truth.copy()
    expected[list(noes)] = 9
    assert same(group(rows, contradicts=contradict).labels, expected)


def test_who_takes_no_side_is_with_the_many() -> None:
    rows = np.repeat(np.eye(8, dtype=np.float32)[:1], 9, axis=0)
    side = ["yes", "no", "", "no", "", "no", "no", "yes", ""]
    labels = group(rows, contradicts=lambda one, other: {side[one], side[other]} == {"yes", "no"}).labels
    assert labels.tolist() == [0, 1, 1, 1, 1, 1, 1, 0, 1]


def test_new_rows_join_the_group_of_their_matter_or_wait() -> None:
    rows, truth = around(12, 10)
    known, new = truth < 11, np.arange(len(rows)) % 10 == 0
    found = group(rows[known & ~new])
    means, sizes = centroids(rows[known & ~new], found.labels)
    label = dict(zip(truth[known & ~new].tolist(), found.labels.tolist(), strict=True))
    assert join(rows[new], means, sizes, found.similarity) == [label.get(matter) for matter in truth[new].tolist()]


def test_with_no_group_all_wait() -> None:
    rows, _ = around(1, 3)
    assert join(rows, rows[:0], np.empty(0, np.int64), 0.5) == [None] * 3
    assert join(rows[:0], rows, np.ones(3, np.int64), 0.5) == []


def test_of_groups_equally_near_the_larger_is_joined() -> None:
    twins = np.repeat(np.eye(4, dtype=np.float32)[:1], 3, axis=0)
    assert join(twins[:1], twins, np.array([1, 5, 5]), 0.5) == [1]
