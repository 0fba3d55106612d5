"""When a newer lesson corrects an older one."""

import pytest

from reflexio.agents.attempt import Lesson
from reflexio.agents.lessons.correction import conflict, correction, disagreement
from reflexio.agents.lessons.store import MemoryLessons

LONG = (
    "In the previous attempt the loop stopped at index {} because the range was computed before the list had been "
    "filtered, so the last element was never compared; next time filter first and then iterate over what is left."
)


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("Set the timeout to 60 seconds.", "Set the timeout to 30 seconds."),
        ("Never close the drawer.", "Always close the drawer."),
    ],
)
def test_another_figure_or_a_no_corrects_short_advice(newer: str, older: str) -> None:
    assert disagreement(newer, older)


def test_a_figure_in_a_long_reflection_corrects_nothing() -> None:
    assert not disagreement(LONG.format(7), LONG.format(9))


async def test_long_lessons_that_conflict_are_both_kept() -> None:
    reasons = "because the pressure in the old pipe rises fast and the sensor reports it only after half a minute, " * 2
    older = f"Always close the valve before the test begins, {reasons}so that nobody waits for a reading that is wrong."
    newer = older.replace("Always", "Never")
    assert conflict(newer, older)
    assert not correction(newer, older)
    lessons = MemoryLessons()
    await lessons.save([Lesson(older, trigger="the valve"), Lesson(newer, trigger="the valve")])
    assert {hit.lesson.content for hit in await lessons.recall("the valve")} == {older, newer}
