"""Which playbooks belong together: clusters keep their numbers, new ones join or wait, opposites stay apart."""

import numpy as np
from numpy.typing import NDArray

from reflexio.learning.aggregate import MOST_ATTEMPTS, Layout, arrange, changed, fingerprint, heirs, inside
from reflexio.ports.storage import Cluster, Member, Pool

SIMILARITY = 0.6
ASK, REFUND = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


def member(number: int, cluster: int = 0, content: str = "", *, at: int = 1) -> Member:
    return Member(number, f"u{number}", cluster, at, "", content or f"Do it in way {number}.", None)


def rows(*directions: tuple[float, float, float]) -> NDArray[np.float32]:
    return np.array(directions, np.float32)


def pool(**values: float) -> Pool:
    known = {"similarity": SIMILARITY, "grouped": 4, "clusters": 2, **values}
    return Pool("org", "v1", "x", **known)  # type: ignore[arg-type]


def laid_out(members: list[Member], vectors: NDArray[np.float32], known: Pool, *, anew: bool = False) -> Layout:
    return arrange(members, vectors, known, similarity=SIMILARITY, anew=anew)


def test_a_new_playbook_joins_the_cluster_it_is_nearest_to() -> None:
    members = [member(1, 1), member(2, 1), member(3, 2), member(4, 2), member(5)]
    layout = laid_out(members, rows(ASK, ASK, REFUND, REFUND, (0.9, 0.1, 0)), pool())
    assert layout.numbers == {1: 1, 2: 1, 3: 2, 4: 2, 5: 1}
    assert not layout.is_new


def test_what_joins_nobody_waits_in_a_cluster_of_its_own() -> None:
    members = [member(1, 1), member(2, 1), member(3, 2), member(4, 2), member(5)]
    layout = laid_out(members, rows(ASK, ASK, REFUND, REFUND, (0, 0, 1)), pool())
    assert layout.numbers[5] == 3
    assert layout.last == 3


def test_what_says_the_opposite_joins_nobody_who_says_it() -> None:
    yes, no = "Ask for the order number.", "Do not ask for the order number."
    members = [*(member(n, 1, yes) for n in (1, 2, 3, 4)), member(5, 0, no), member(6, 0, no)]
    layout = laid_out(members, rows(*[ASK] * 6), pool(clusters=1))
    assert layout.numbers[5] == layout.numbers[6] == 2


def test_a_second_dissenter_joins_the_first() -> None:
    yes, no = "Ask for the order number.", "Do not ask for the order number."
    members = [*(member(n, 1, yes) for n in (1, 2, 3, 4)), member(5, 2, no), member(6, 0, no)]
    layout = laid_out(members, rows(*[ASK] * 6), pool(grouped=5))
    assert layout.numbers[6] == 2


def test_grouping_anew_keeps_the_numbers_of_what_stays_together() -> None:
    members = [member(1, 7), member(2, 7), member(3, 4), member(4, 4), member(5)]
    vectors = rows(ASK, ASK, REFUND, REFUND, (0, 0, 1))
    layout = laid_out(members, vectors, pool(clusters=9), anew=True)
    assert layout.numbers == {1: 7, 2: 7, 3: 4, 4: 4, 5: 10}
    assert (layout.grouped, layout.last, layout.is_new) == (5, 10, True)


def test_a_pool_that_has_grown_much_is_grouped_anew() -> None:
    members = [member(1, 1), member(2, 1), member(3), member(4)]
    assert laid_out(members, rows(ASK, ASK, ASK, ASK), pool(grouped=2)).is_new
    assert not laid_out(members, rows(ASK, ASK, ASK, ASK), pool(grouped=3)).is_new


def test_an_empty_pool_has_an_empty_layout() -> None:
    assert laid_out([], np.zeros((0, 3), np.float32), pool(), anew=True).numbers == {}


def test_a_cluster_changes_when_a_member_comes_goes_or_is_edited() -> None:
    was = fingerprint([member(1), member(2)])
    assert fingerprint([member(2), member(1)]) == was
    assert fingerprint([member(1)]) != was
    assert fingerprint([member(1), member(2, at=2)]) != was


def test_only_large_and_changed_clusters_reach_the_learner() -> None:
    numbers = {1: 1, 2: 1, 3: 2, 4: 2, 5: 3}
    clusters = inside([member(n) for n in numbers], numbers)
    seen = Cluster(1, written=fingerprint(clusters[1]))
    assert [each.number for each in changed(clusters, {1: seen}, 2, patient=True)] == [2]
    assert [each.number for each in changed(clusters, {1: seen}, 1, patient=True)] == [2, 3]


def test_a_cluster_that_failed_too_often_waits_until_it_changes_or_somebody_asks() -> None:
    clusters = {1: [member(1), member(2)]}
    tired = {1: Cluster(1, failed=fingerprint(clusters[1]), attempts=MOST_ATTEMPTS)}
    assert changed(clusters, tired, 2, patient=True) == []
    assert len(changed(clusters, tired, 2, patient=False)) == 1
    grown = {1: [*clusters[1], member(3)]}
    assert len(changed(grown, tired, 2, patient=True)) == 1


def test_a_playbook_follows_most_of_what_it_was_made_of() -> None:
    clusters = {1: [member(1), member(2)], 2: [member(3)]}
    assert heirs(clusters, {90: [1, 2, 3], 91: [8, 9]}) == {90: 1}
