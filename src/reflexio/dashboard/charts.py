"""Charts of values over time as inline SVG: lines, areas, and stacked bars. `plots` has the others.

A chart is a `figure` with a heading, a legend, the picture, and its figures as a table. Widths are percentages, so text
keeps its size on every screen. Colours are classes (`chart-1` to `chart-6`) of `static/charts.css`; nothing is styled
inline, as the content security policy demands. Every value is shown on hover, and is in the table.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from reflexio.dashboard.figures import (
    HEIGHT,
    PLOT,
    TOP,
    are_whole,
    centre,
    colour_class,
    down,
    element,
    figure,
    frame,
    grid,
    labels_below,
    optional,
    percent,
    scale_left,
    svg,
    table,
    text,
)
from reflexio.dashboard.scales import Scale, exact_number, labelled_slots

THOUSAND = 1000
"""Width of the inner picture of lines, which is stretched to the width of the plot."""


@dataclass(frozen=True)
class Series:
    """One line, or the bars of one colour: a value for each slot, None where there is none. `colour` is 1 to 6."""

    name: str
    values: Sequence[float | None]
    colour: int = 0


def line_chart(title: str, slots: Sequence[str], series: Sequence[Series], *, unit: str = "") -> Markup:
    """Values over time, one line for each series. `slots` name the days or hours, oldest first."""
    return _over_time(title, slots, series, unit, _lines, [_largest(series), _smallest(series)])


def area_chart(title: str, slots: Sequence[str], series: Sequence[Series], *, unit: str = "") -> Markup:
    """Lines with the surface below them filled."""
    return _over_time(title, slots, series, unit, _areas, [_largest(series), _smallest(series)])


def bar_chart(title: str, slots: Sequence[str], series: Sequence[Series], *, unit: str = "") -> Markup:
    """One bar for each slot; the bars of several series are stacked. Values are not negative."""
    totals = [sum(row.values[place] or 0.0 for row in series) for place in range(len(slots))]
    return _over_time(title, slots, series, unit, _bars, totals)


Draw = Callable[[Sequence[Series], Scale], Markup]


def _over_time(
    title: str, slots: Sequence[str], series: Sequence[Series], unit: str, draw: Draw, extremes: Sequence[float]
) -> Markup:
    whole = are_whole(value for row in series for value in row.values if value is not None)
    scale = Scale.covering(extremes, whole=whole)
    coloured = [Series(row.name, row.values, row.colour or place + 1) for place, row in enumerate(series)]
    ticks = [(centre(place, len(slots)), slots[place]) for place in labelled_slots(len(slots))] if slots else []
    parts = [grid(scale), labels_below(ticks), draw(coloured, scale) if slots else Markup("")]
    parts += [_readout(place, slots, coloured, unit) for place in range(len(slots))]
    rows = [[slot, *(optional(row.values[place]) for row in coloured)] for place, slot in enumerate(slots)]
    picture = frame(scale_left(scale), svg(HEIGHT, parts, "chart-plot"), _summary(title, slots, coloured, unit))
    figures = table(title, ["", *(row.name for row in coloured)], rows)
    legend = [(row.name, row.colour) for row in coloured] if len(coloured) > 1 else []
    return figure(title, unit, legend, picture, figures, is_empty=not _has_values(coloured))


def _lines(series: Sequence[Series], scale: Scale) -> Markup:
    paths = [_line(row, scale, is_filled=False) for row in series]
    return Markup("").join([_stretched(paths), *(_dots(row, scale) for row in series)])


def _areas(series: Sequence[Series], scale: Scale) -> Markup:
    paths = [_line(row, scale, is_filled=filled) for row in series for filled in (True, False)]
    return Markup("").join([_stretched(paths), *(_dots(row, scale) for row in series)])


def _line(row: Series, scale: Scale, *, is_filled: bool) -> Markup:
    """One path a stretch of known values."""
    count, base = len(row.values), PLOT * (1 - scale.share(0.0))
    places = [
        None if value is None else ((place + 0.5) * THOUSAND / count, PLOT * (1 - scale.share(value)))
        for place, value in enumerate(row.values)
    ]
    steps = []
    for stretch in _stretches(places):
        way = "L".join(f"{x:.1f} {y:.1f}" for x, y in stretch)
        end = f"L{stretch[-1][0]:.1f} {base:.1f}L{stretch[0][0]:.1f} {base:.1f}Z" if is_filled else ""
        steps.append(f"M{way}{end}")
    kind = "chart-area" if is_filled else "chart-line"
    return element("path", f"{kind} {colour_class(row.colour)}", d="".join(steps), vector_effect="non-scaling-stroke")


def _stretches(places: Sequence[tuple[float, float] | None]) -> Iterator[list[tuple[float, float]]]:
    stretch: list[tuple[float, float]] = []
    for place in [*places, None]:
        if place is not None:
            stretch.append(place)
        elif stretch:
            yield stretch
            stretch = []


def _dots(row: Series, scale: Scale) -> Markup:
    """Values without a neighbour, which no line shows."""
    known = [value is not None for value in [None, *row.values, None]]
    return Markup("").join(
        element(
            "circle",
            f"chart-dot {colour_class(row.colour)}",
            cx=centre(place, len(row.values)),
            cy=down(scale, value),
            r=3,
        )
        for place, value in enumerate(row.values)
        if value is not None and not known[place] and not known[place + 2]
    )


def _bars(series: Sequence[Series], scale: Scale) -> Markup:
    count = len(series[0].values) if series else 0
    bars = []
    for place in range(count):
        heights = [0.0]
        for row in series:
            heights.append(heights[-1] + (row.values[place] or 0.0))
        for row, (low, high) in zip(series, pairwise(heights), strict=True):
            if high > low:
                bars.append(_bar(row, place, count, down(scale, low), down(scale, high)))
    return Markup("").join(bars)


def _bar(row: Series, place: int, count: int, bottom: float, top: float) -> Markup:
    gap = 0.18
    height = max(1.0, round(bottom - top, 1))
    return element(
        "rect",
        f"chart-bar {colour_class(row.colour)}",
        x=percent((place + gap / 2) / count),
        width=percent((1 - gap) / count),
        y=round(bottom - height, 1),
        height=height,
        rx=2,
    )


def _readout(place: int, slots: Sequence[str], series: Sequence[Series], unit: str) -> Markup:
    """The surface of one slot: under the pointer it shows a line and the values above the plot."""
    words = _values_at(place, slots, series, unit)
    count = len(slots)
    middle = centre(place, count)
    hit = Markup('<rect class="chart-hit" x="{}" width="{}" y="0" height="{}"><title>{}</title></rect>')
    return Markup('<g class="chart-slot">{}{}{}</g>').format(
        hit.format(percent(place / count), percent(1 / count), TOP + PLOT, words),
        element("line", "chart-cursor", x1=middle, x2=middle, y1=TOP, y2=TOP + PLOT),
        text("chart-value", words, x="100%", y=14, text_anchor="end"),
    )


def _values_at(place: int, slots: Sequence[str], series: Sequence[Series], unit: str) -> str:
    if len(series) == 1:
        return f"{slots[place]}: {optional(series[0].values[place])} {unit}".rstrip()
    return f"{slots[place]}: " + ", ".join(f"{row.name} {optional(row.values[place])}" for row in series)


def _stretched(paths: Sequence[Markup]) -> Markup:
    """Paths know no percentages: they are drawn in a picture that is stretched to the width of the plot."""
    picture = Markup(
        '<svg class="chart-lines" x="0" y="{}" width="100%" height="{}" viewBox="0 0 {} {}" preserveAspectRatio="none">'
    )
    return picture.format(TOP, PLOT, THOUSAND, PLOT) + Markup("").join(paths) + Markup("</svg>")


def _summary(title: str, slots: Sequence[str], series: Sequence[Series], unit: str) -> str:
    """The chart in one sentence, for who cannot see it."""
    if not slots:
        return f"{title}: nothing yet."
    ranges = []
    for row in series:
        known = [value for value in row.values if value is not None]
        if known:
            low, high, last = map(exact_number, (min(known), max(known), known[-1]))
            ranges.append(f"{row.name} between {low} and {high} {unit}".rstrip() + f", last {last}")
    return f"{title}, {slots[0]} to {slots[-1]}: {'; '.join(ranges)}."


def _largest(series: Sequence[Series]) -> float:
    return max((value for row in series for value in row.values if value is not None), default=1.0)


def _smallest(series: Sequence[Series]) -> float:
    return min((value for row in series for value in row.values if value is not None), default=0.0)


def _has_values(series: Sequence[Series]) -> bool:
    return any(value is not None for row in series for value in row.values)
