"""How often a caller may call."""

import pytest

from reflexio.errors import InvalidRequest, RateLimited
from reflexio.server.request_gate import RateLimiter
from reflexio.settings import RateLimit, Settings
from tests.unit.server.conftest import Ticks


def test_a_bucket_fills_again(ticks: Ticks) -> None:
    limiter = RateLimiter([RateLimit("*", 2, 60)], monotonic=ticks)
    limiter.admit("ann", "a")
    limiter.admit("ann", "b")
    with pytest.raises(RateLimited) as refused:
        limiter.admit("ann", "a")
    assert refused.value.retry_after == 30
    ticks.now += 30
    limiter.admit("ann", "a")
    ticks.now += 10_000
    limiter.admit("ann", "a")
    limiter.admit("ann", "a")
    with pytest.raises(RateLimited):
        limiter.admit("ann", "a")


def test_callers_do_not_share(ticks: Ticks) -> None:
    limiter = RateLimiter([RateLimit("*", 1, 60)], monotonic=ticks)
    limiter.admit("ann", "a")
    limiter.admit("bob", "a")


def test_a_refused_call_takes_nothing_from_other_limits(ticks: Ticks) -> None:
    limiter = RateLimiter([RateLimit("*", 3, 60), RateLimit("a", 1, 60)], monotonic=ticks)
    limiter.admit("ann", "a")
    for _ in range(5):
        with pytest.raises(RateLimited):
            limiter.admit("ann", "a")
    limiter.admit("ann", "b")
    limiter.admit("ann", "b")


def test_limits_are_read_from_the_environment() -> None:
    settings = Settings.read({"REFLEXIO_RATE_LIMITS": "600/minute, publish_interaction=60/hour"})
    assert settings.rate_limits == (RateLimit("*", 600, 60), RateLimit("publish_interaction", 60, 3600))


@pytest.mark.parametrize("text", ["often", "0/minute", "5/fortnight", "-1/minute", "a=b", "5"])
def test_a_limit_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(InvalidRequest, match="REFLEXIO_RATE_LIMITS"):
        Settings.read({"REFLEXIO_RATE_LIMITS": text})
