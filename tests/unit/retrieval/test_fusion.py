import random
from dataclasses import replace
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexio.retrieval.fusion import LEAST_WEIGHT, ByVectors, ByWords, Fused, fuse


def order(fused: Fused) -> list[int]:
    return [hit.id for hit in fused.hits]


def vectors(*scores: float, mean: float = 0.2, spread: float = 0.1) -> ByVectors:
    return ByVectors(range(1, len(scores) + 1), scores, mean, spread)


def test_rare_words_outweigh_a_little_similarity() -> None:
    words = ByWords([2], [9.0], [0.6])
    assert order(fuse(words, vectors(0.45, 0.35, 0.1)))[0] == 2


def test_strong_similarity_outweighs_common_words() -> None:
    words = ByWords([2], [0.8], [0.1])
    assert order(fuse(words, vectors(0.6, 0.25, 0.1)))[0] == 1


def test_words_of_a_long_query_that_every_row_shares_count_less() -> None:
    found = ByWords([2, 1], [9.0, 4.0], [0.5, 0.3])
    assert order(fuse(found, vectors(0.5, 0.3)))[0] == 2
    assert order(fuse(replace(found, spread=4.0), vectors(0.5, 0.3)))[0] == 1


def test_a_row_that_holds_the_whole_query_silences_the_vectors() -> None:
    fused = fuse(ByWords([3], [4.0], [1.0]), vectors(0.4, 0.35, 0.2))
    assert order(fused)[0] == 3
    assert fused.vector_weight == 0


def test_a_row_that_stands_out_beyond_chance_is_heard_whatever_the_words_hold_and_the_exam_said() -> None:
    words = ByWords([3], [4.0], [1.0])
    assert order(fuse(words, vectors(0.9, 0.1, 0.2), trust=0.0))[0] == 1


def test_a_row_that_stands_out_for_its_words_is_no_news_from_the_vectors() -> None:
    words = ByWords([1, 3], [4.0, 3.0], [1.0, 0.8])
    assert fuse(words, vectors(0.9, 0.1, 0.2), trust=0.0).vector_weight == 0


def test_vectors_count_less_where_the_words_see_nothing_in_the_nearest_rows() -> None:
    near = fuse(ByWords([1], [8.0], [0.7]), vectors(0.45, 0.4, 0.2)).vector_weight
    far = fuse(ByWords([3], [8.0], [0.7]), vectors(0.45, 0.4, 0.2)).vector_weight
    assert far < near / 2


def test_vectors_count_more_where_the_words_hold_next_to_nothing_of_the_query() -> None:
    chatty = fuse(ByWords([3], [4.0], [0.05]), vectors(0.45, 0.4, 0.2)).vector_weight
    assert 1 < chatty < fuse(ByWords([3], [4.0], [0.01]), vectors(0.45, 0.4, 0.2)).vector_weight
    assert fuse(ByWords([3], [4.0], [0.05]), vectors(0.45, 0.4, 0.2), trust=0.0).vector_weight <= LEAST_WEIGHT


def test_an_embedder_that_finds_all_rows_near_and_alike_cannot_read_them() -> None:
    words = ByWords([2], [3.0], [0.3])
    alike = vectors(0.84, 0.8, 0.75, mean=0.77, spread=0.04)
    assert fuse(words, alike, unrelated=0.06).vector_weight < 0.1
    # The same cosines say more where strangers are as near, and the usual ones are unknown before the exam.
    assert fuse(words, alike, unrelated=0.72).vector_weight > 0.5
    assert fuse(words, alike).vector_weight > 0.5


def test_an_embedder_that_failed_the_exam_only_breaks_ties() -> None:
    words = ByWords([1, 2, 3], [3.0, 3.0, 2.0], [0.5, 0.5, 0.4])
    assert order(fuse(words, vectors(0.2, 0.25, 0.4), trust=0.0)) == [2, 1, 3]


@pytest.mark.parametrize(("mean", "spread"), [(0.2, 0.1), (0.8, 0.02), (-0.3, 0.4)])
def test_the_range_of_an_embedders_scores_does_not_matter(mean: float, spread: float) -> None:
    standing = [3.0, 1.0, -0.5, 2.0]
    words = ByWords([3, 2], [5.0, 2.0], [0.5, 0.3])
    stretched = ByVectors([1, 2, 3, 4], [mean + spread * s for s in standing], mean, spread)
    plain = ByVectors([1, 2, 3, 4], standing, 0.0, 1.0)
    assert order(fuse(words, stretched)) == order(fuse(words, plain))


def test_without_vectors_the_words_decide() -> None:
    fused = fuse(ByWords([5, 4], [2.0, 1.0], [0.5, 0.2]), ByVectors())
    assert order(fused) == [5, 4]
    assert [hit.score for hit in fused.hits] == [2.0, 1.0]
    assert {hit.led_by for hit in fused.hits} == {"words"}


@pytest.mark.parametrize("trust", [0.0, 1.0])
def test_without_words_the_vectors_decide(trust: float) -> None:
    assert order(fuse(ByWords(), vectors(0.1, 0.5, 0.3), trust=trust)) == [2, 3, 1]


def test_with_neither_there_is_nothing() -> None:
    assert fuse(ByWords(), ByVectors()).hits == ()


def test_a_row_that_is_not_embedded_yet_counts_as_average() -> None:
    words = ByWords([9, 1], [6.0, 6.0], [0.5, 0.5])
    fused = fuse(words, vectors(0.2, 0.5))
    assert {hit.id: hit.score for hit in fused.hits}[9] == pytest.approx({hit.id: hit.score for hit in fused.hits}[1])
    (unknown,) = [hit for hit in fused.hits if hit.id == 9]
    assert unknown.why == f"words 6.0 (rank 1) + {unknown.vector_evidence:.1f} as an average row (no vector)"
    assert unknown.score == unknown.words_evidence + unknown.vector_evidence


def test_where_meaning_does_not_count_a_row_has_no_vector_and_says_so() -> None:
    (hit,) = fuse(ByWords([9], [6.0], [0.5]), ByVectors()).hits
    assert hit.why == "words 6.0 (rank 1), no vector"


@pytest.mark.parametrize("scores", [(0.4,), (0.4, 0.4, 0.4)])
def test_vectors_that_tell_no_difference_leave_the_words_order(scores: tuple[float, ...]) -> None:
    rows = list(range(1, len(scores) + 1))[::-1]
    words = ByWords(rows, [2.0 + row for row in rows], [0.5] * len(rows))
    assert order(fuse(words, ByVectors(rows, scores, 0.4, 0.0))) == rows


def test_equals_come_by_cosine_and_then_by_age() -> None:
    assert order(fuse(ByWords(), ByVectors([3, 2, 1], [0.5, 0.5, 0.6], 0.5, 0.0))) == [1, 2, 3]


def test_a_hit_explains_itself() -> None:
    first, second = fuse(ByWords([1], [7.1], [0.5]), vectors(0.3, 0.5)).hits
    assert (first.id, first.words_rank, first.words_score, first.vector_score) == (1, 1, 7.1, 0.3)
    assert first.led_by == "words"
    assert first.why.startswith("words 7.1 (rank 1) + vectors ")
    assert (second.words_rank, second.led_by) == (None, "vectors")
    assert second.why.startswith("no words + vectors ")


@given(
    st.lists(st.tuples(st.floats(0, 80), st.floats(0, 1)), max_size=20),
    st.lists(st.floats(-1, 1), max_size=20),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_scores_are_finite_and_every_row_comes_once(
    found: list[tuple[float, float]], cosines: list[float], spread: float, trust: float
) -> None:
    words = ByWords(range(10, 10 + len(found)), [score for score, _ in found], [share for _, share in found])
    fused = fuse(words, ByVectors(range(len(cosines)), cosines, 0.1, spread), trust=trust)
    assert sorted(order(fused)) == sorted({*words.ids, *range(len(cosines))})
    assert all(hit.score == hit.score and abs(hit.score) < 1e15 for hit in fused.hits)
    assert [hit.score for hit in fused.hits] == sorted((hit.score for hit in fused.hits), reverse=True)


def test_two_hundred_candidates_are_fused_within_two_milliseconds() -> None:
    chance = random.Random(1)
    words = ByWords(range(100), sorted((chance.random() * 9 for _ in range(100)), reverse=True), [0.5] * 100)
    near = ByVectors(range(50, 250), [chance.random() for _ in range(200)], 0.5, 0.3)
    took = []
    for _ in range(20):
        begun = perf_counter()
        fuse(words, near)
        took.append(perf_counter() - begun)
    assert min(took) < 0.002
