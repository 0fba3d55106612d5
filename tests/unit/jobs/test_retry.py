"""When a failed attempt may be repeated, also with clocks that jump."""

import pytest

from reflexio.jobs.retry import LONGEST_BACKOFF, is_pausing


@pytest.mark.parametrize(
    ("ahead", "pausing"), [(-1, False), (0, False), (1, True), (LONGEST_BACKOFF, True), (400 * 86_400, False)]
)
def test_a_pause_is_never_longer_than_the_longest(ahead: int, pausing: bool) -> None:
    assert is_pausing(1_000_000 + ahead, 1_000_000) is pausing
