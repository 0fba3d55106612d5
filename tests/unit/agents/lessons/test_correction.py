"""When a newer lesson corrects an older one."""

import pytest

from reflexio.agents.lessons.correction import disagreement

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
