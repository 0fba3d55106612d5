"""Charts: what is drawn is what the values say, words are escaped, and nothing needs an inline style."""

import re
from xml.etree import ElementTree

import pytest
from markupsafe import Markup

from reflexio.dashboard import charts, plots
from reflexio.dashboard.charts import Series
from reflexio.dashboard.plots import Interval, Point
from reflexio.dashboard.scales import Scale, exact_number, labelled_slots, short_number

DAYS = ["1 Nov", "2 Nov", "3 Nov", "4 Nov"]
NASTY = "<script>alert('x')</script>\"&"


def _parse(chart: Markup) -> ElementTree.Element:
    """A chart must be well-formed XML, so that no browser has to guess."""
    return ElementTree.fromstring(str(chart))  # noqa: S314 - our own markup


def _of_class(chart: Markup, name: str) -> list[ElementTree.Element]:
    return [element for element in _parse(chart).iter() if name in element.get("class", "").split()]


def _rows(chart: Markup) -> list[list[str]]:
    return [["".join(cell.itertext()) for cell in row] for row in _parse(chart).iter("tr")]


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0, 9], (0, 2.5, 5, 7.5, 10)),
        ([], (0, 0.25, 0.5, 0.75, 1)),
        ([0, 0], (0, 0.25, 0.5, 0.75, 1)),
        ([-0.3, 0.4], (-0.4, -0.2, 0, 0.2, 0.4)),
        ([float("nan"), 3.0], (0, 1, 2, 3)),
        ([1e9], (0, 2.5e8, 5e8, 7.5e8, 1e9)),
    ],
)
def test_ticks_are_nice_and_hold_all_values(values: list[float], ticks: tuple[float, ...]) -> None:
    assert Scale.covering(values).ticks == ticks


@pytest.mark.parametrize("values", [[1, 3], [7], [0, 1], [97, 102], [9], [0, 90]])
def test_counts_have_whole_ticks(values: list[float]) -> None:
    ticks = Scale.covering(values, whole=True).ticks
    assert all(tick == int(tick) for tick in ticks)
    assert len(ticks) <= 6


@pytest.mark.parametrize("count", [1, 2, 5, 6, 28, 29, 31, 365])
def test_few_slots_are_labelled_and_the_last_one_always_is(count: int) -> None:
    slots = labelled_slots(count)
    assert slots[-1] == count - 1
    assert len(slots) <= 5


@pytest.mark.parametrize("value", [0.0, 1e-9, 0.00004, 0.001, 999.6, 123456.0, 1e15])
def test_numbers_are_written_without_exponents(value: float) -> None:
    assert "e" not in exact_number(value)
    assert "e" not in short_number(value)


def test_bars_are_as_high_as_their_values_and_stacked() -> None:
    chart = charts.bar_chart("Learned", DAYS, [Series("profiles", [10, 0, 5, 0]), Series("playbooks", [10, 0, 0, 5])])
    heights = [float(bar.get("height", "0")) for bar in _of_class(chart, "chart-bar")]
    assert heights == [heights[0], heights[0], heights[0] / 2, heights[0] / 2]
    first, second = _of_class(chart, "chart-bar")[:2]
    assert float(second.get("y", "0")) + heights[1] == pytest.approx(float(first.get("y", "0")), abs=0.2)


def test_a_line_breaks_where_there_is_no_value_and_a_lone_value_is_a_dot() -> None:
    chart = charts.line_chart("Share", DAYS, [Series("v1", [0.1, 0.2, None, 0.4])])
    (line,) = _of_class(chart, "chart-line")
    assert line.get("d", "").count("M") == 2
    assert len(_of_class(chart, "chart-dot")) == 1


def test_an_area_ends_at_zero() -> None:
    (area,) = _of_class(charts.area_chart("Turns", DAYS, [Series("turns", [4, 2, 3, 4])]), "chart-area")
    assert area.get("d", "").endswith("Z")


def test_every_value_is_in_the_table_and_under_the_pointer() -> None:
    chart = charts.line_chart("Turns", DAYS, [Series("in", [1, 20000, 3, 4]), Series("out", [0.5, None, 0, 1])])
    assert _rows(chart)[:3] == [["", "in", "out"], ["1 Nov", "1", "0.5"], ["2 Nov", "20,000", "–"]]
    titles = ["".join(title.itertext()) for title in _parse(chart).iter("title")]
    assert titles[1] == "2 Nov: in 20,000, out –"


def test_screen_readers_get_a_sentence() -> None:
    chart = charts.line_chart("Turns", DAYS, [Series("turns", [1, 7, 3, 4])], unit="a day")
    assert "Turns, 1 Nov to 4 Nov: turns between 1 and 7 a day, last 4." in str(chart)


def test_a_chart_without_values_says_so() -> None:
    for chart in (
        charts.bar_chart("Turns", [], [Series("turns", [])]),
        charts.line_chart("Turns", DAYS, [Series("turns", [None] * 4)]),
        plots.scatter_chart("Scores", [], x_label="number", y_label="score"),
        plots.forest_plot("Effects", []),
    ):
        assert "Nothing to show yet." in str(chart)


def _all_charts(words: str) -> list[Markup]:
    series = [Series(words, [1, 2, 3, 4]), Series("other", [2, 3, 4, 5])]
    return [
        *(draw(words, [words, *DAYS[1:]], series, unit=words)
          for draw in (charts.line_chart, charts.area_chart, charts.bar_chart)),
        plots.scatter_chart(words, [Point(words, 1, 2, words, href=f"/{words}")], x_label=words, y_label=words),
        plots.forest_plot(words, [Interval(words, 0.1, 0, 0.2, words), Interval(words, note=words)], better=words),
    ]  # fmt: skip


def test_words_of_users_are_escaped_everywhere() -> None:
    for chart in _all_charts(NASTY):
        assert "<script" not in str(chart)
        assert not list(_parse(chart).iter("script"))


def test_nothing_is_styled_inline() -> None:
    assert not [chart for chart in _all_charts("words") if re.search(r"\sstyle=|\son\w+=", str(chart))]


def test_points_are_placed_by_both_measures_and_link() -> None:
    points = [Point("first", 0, 0.0), Point("best", 10, 1.0, is_marked=True, href="#best")]
    chart = plots.scatter_chart("Scores", points, x_label="number", y_label="score")
    first, best = _of_class(chart, "chart-mark")
    assert (first.get("cx"), best.get("cx")) == ("0.00%", "100.00%")
    assert float(first.get("cy", "0")) > float(best.get("cy", "0"))
    assert [link.get("href") for link in _parse(chart).iter("a")] == ["#best"]


@pytest.mark.parametrize(
    ("low", "high", "side"), [(0.1, 0.3, "chart-above"), (-0.3, -0.1, "chart-below"), (-0.1, 0.3, "chart-open")]
)
def test_an_interval_says_on_which_side_of_zero_it_is(low: float, high: float, side: str) -> None:
    chart = plots.forest_plot("Effects", [Interval("Greet", (low + high) / 2, low, high)])
    assert len(_of_class(chart, side)) == 1


def test_an_interval_without_a_value_says_why() -> None:
    chart = plots.forest_plot("Effects", [Interval("New", note="too few"), Interval("Old", 0.2, 0.1, 0.3)])
    assert _rows(chart)[1] == ["New", "–", "–", "–", "too few"]
    assert len(_of_class(chart, "chart-interval")) == 1
