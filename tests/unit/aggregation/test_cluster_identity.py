"""Which playbooks belong together: clusters keep their numbers, and only what changed_clusters is news."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexio.aggregation.cluster_identity import (
    MOST_ATTEMPTS,
    Centroids,
    assign,
    by_cluster,
    centroid_bytes,
    changed_clusters,
    fingerprint,
    must_recluster,
    successors,
    unanswered_clusters,
)
from reflexio.models.config import PlaybookAggregatorConfig
from reflexio.ports.storage import Cluster, Member, Pool

SIMILARITY = 0.6
ONE, TWO = (PlaybookAggregatorConfig(min_cluster_size=least) for least in (1, 2))
OF_TWO_USERS = PlaybookAggregatorConfig(min_distinct_users=2)
ASK, REFUND = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


def member(number: int, cluster: int = 0, content: str = "", *, at: int = 1) -> Member:
    return Member(number, f"u{number}", cluster, at, "", content or f"Do it in way {number}.", None)


def supported(number: int, *, statements: int = 2, users: int = 2, **state: Any) -> Cluster:
    return Cluster(number, size=2, statements=statements, users=users, **state)


def rows(*directions: tuple[float, float, float]) -> NDArray[np.float32]:
    return np.array(directions, np.float32)


def test_grouping_anew_keeps_the_numbers_of_what_stays_together() -> None:
    members = [member(1, 7), member(2, 7), member(3, 4), member(4, 4), member(5)]
    layout = assign(members, rows(ASK, ASK, REFUND, REFUND, (0, 0, 1)), 9, SIMILARITY)
    assert layout.numbers == {1: 7, 2: 7, 3: 4, 4: 4, 5: 10}
    assert layout.last == 10


def test_of_two_clusters_that_merge_the_larger_gives_its_number() -> None:
    members = [member(1, 3), member(2, 5), member(3, 5)]
    assert set(assign(members, rows(ASK, ASK, ASK), 9, SIMILARITY).numbers.values()) == {5}


def test_those_who_say_the_opposite_are_never_together() -> None:
    yes, no = "Ask for the order number.", "Do not ask for the order number."
    members = [member(1, 0, yes), member(2, 0, no), member(3, 0, yes)]
    numbers = assign(members, rows(ASK, ASK, ASK), 0, SIMILARITY).numbers
    assert numbers[1] == numbers[3] != numbers[2]


def test_an_empty_pool_has_an_empty_layout() -> None:
    assert assign([], np.zeros((0, 3), np.float32), 4, None).numbers == {}


def test_a_new_playbook_is_held_against_the_middles() -> None:
    means = centroid_bytes([member(1), member(2), member(3)], rows(ASK, ASK, REFUND), {1: 1, 2: 1, 3: 2})
    centres = Centroids.of([Cluster(1, size=2, centre=means[1]), Cluster(2, size=1, centre=means[2])], 3)
    assert centres.nearest(rows((0.9, 0.1, 0), (0, 0, 1)), SIMILARITY) == [1, None]
    assert centres.next_best(rows(ASK)[0], SIMILARITY, {1}) is None
    assert centres.next_best(rows(ASK)[0], -1.0, {1}) == 2


def test_a_pool_is_outgrown_by_growth_another_model_or_another_wish() -> None:
    pool = Pool("org", "v1", "x", model="m", similarity=0.5, grouped=10)
    assert not must_recluster(pool, 14, "m", None)
    assert not must_recluster(pool, 14, "m", 0.5)
    assert must_recluster(pool, 15, "m", None)
    assert must_recluster(pool, 10, "other", None)
    assert must_recluster(pool, 10, "m", 0.6)
    assert must_recluster(Pool("org", "v1", "x", model="m"), 0, "m", None)


def test_what_the_learner_owes_is_left_over() -> None:
    owed, failed = supported(1), supported(2, written="x", failed="y", attempts=1)
    done, small = supported(3, written="x"), supported(4, statements=1)
    given_up = supported(5, failed="y", attempts=MOST_ATTEMPTS)
    assert unanswered_clusters([owed, failed, done, small, given_up], TWO) == [1, 2]
    assert unanswered_clusters([owed, supported(6, users=1)], OF_TWO_USERS) == [1]


def test_a_cluster_changes_when_a_member_comes_goes_or_is_edited() -> None:
    was = fingerprint([member(1), member(2)])
    assert fingerprint([member(2), member(1)]) == was
    assert fingerprint([member(1)]) != was
    assert fingerprint([member(1), member(2, at=2)]) != was


def test_only_large_and_changed_clusters_reach_the_learner() -> None:
    numbers = {1: 1, 2: 1, 3: 2, 4: 2, 5: 3}
    clusters = by_cluster([member(n) for n in numbers], numbers)
    seen = Cluster(1, written=fingerprint(clusters[1]))
    assert changed_clusters(clusters, {1: seen}, TWO, retry_failed=False) == [2]
    assert changed_clusters(clusters, {1: seen}, ONE, retry_failed=False) == [2, 3]


def test_a_cluster_that_failed_too_often_waits_until_it_changes_or_somebody_asks() -> None:
    clusters = {1: [member(1), member(2)]}
    tired = {1: Cluster(1, failed=fingerprint(clusters[1]), attempts=MOST_ATTEMPTS)}
    assert changed_clusters(clusters, tired, TWO, retry_failed=False) == []
    assert len(changed_clusters(clusters, tired, TWO, retry_failed=True)) == 1
    grown = {1: [*clusters[1], member(3)]}
    assert len(changed_clusters(grown, tired, TWO, retry_failed=False)) == 1


def test_a_playbook_follows_most_of_what_it_was_made_of() -> None:
    clusters = {1: [member(1), member(2)], 2: [member(3)]}
    assert successors(clusters, {90: [1, 2, 3], 91: [8, 9]}) == {90: 1}
