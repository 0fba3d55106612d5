"""Which waiting jobs run next: fair among organisations, in turns among lanes, the oldest first."""

from collections import Counter

from reflexio.engine.lanes import choose_jobs
from reflexio.ports.work import WaitingJob


def jobs(*organisations: str) -> list[WaitingJob]:
    return [WaitingJob(f"{org}{number}", f"{org}/{number}", org) for number, org in enumerate(organisations)]


def chosen(waiting: list[WaitingJob], places: int, **held: int) -> Counter[str]:
    return Counter(job.organisation for job in choose_jobs(waiting, Counter(held), places, {}))


def test_one_organisation_alone_takes_all_places() -> None:
    assert chosen(jobs(*"b" * 20), 8) == {"b": 8}
    assert chosen(jobs(*"b" * 20), 8, b=8) == {}


def test_another_organisation_gets_its_share_while_nobody_lets_go() -> None:
    assert chosen(jobs(*"b" * 20, *"a" * 20), 8, b=8) == {"a": 4}
    assert chosen(jobs(*"b" * 20, *"a" * 20, *"ccc"), 8, b=8, a=4) == {"c": 2}


def test_freed_places_go_to_who_holds_the_fewest() -> None:
    assert chosen(jobs(*"b" * 9, *"a" * 9), 4, b=2, a=1) == {"a": 1}
    assert chosen(jobs(*"b" * 9, *"a" * 9), 4) == {"a": 2, "b": 2}


def test_every_organisation_has_one_place_however_many_there_are() -> None:
    names = [f"org{number}" for number in range(30)]
    assert chosen(jobs(*(name for name in names for _ in range(3))), 2) == dict.fromkeys(names, 1)


def test_the_lane_that_was_served_longest_ago_comes_first_and_of_new_ones_the_oldest() -> None:
    waiting = [WaitingJob(lane, lane, "a") for lane in ("long", "new", "newer")]
    assert [job.lane for job in choose_jobs(waiting, Counter(), 2, {"long": 7})] == ["new", "newer"]
    served = {"long": 7, "new": 8, "newer": 9}
    assert [job.lane for job in choose_jobs(waiting, Counter(), 2, served)] == ["long", "new"]
