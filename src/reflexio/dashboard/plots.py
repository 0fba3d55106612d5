"""Charts of measures that are no course of time: points with two measures, and intervals around zero."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from reflexio.dashboard.figures import (
    BOTTOM,
    HEIGHT,
    are_whole,
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
from reflexio.dashboard.scales import Scale, exact_number, short_number

ROW = 30
"""Height of a row of a chart of intervals."""


@dataclass(frozen=True)
class Point:
    """One point of a scatter, in the colour of its group. `is_marked` draws it larger with a ring."""

    label: str
    x: float
    y: float
    group: str = ""
    is_marked: bool = False
    href: str = ""


@dataclass(frozen=True)
class Interval:
    """One row of a forest plot: a point and the interval around it. Without a value the row says `note`."""

    label: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""


def scatter_chart(title: str, points: Sequence[Point], *, x_label: str, y_label: str) -> Markup:
    """Points with two measures each, such as the candidates of a search: when they came, and their score."""
    groups = list(dict.fromkeys(point.group for point in points))
    x_scale = Scale.covering([point.x for point in points], zero=False, whole=are_whole(point.x for point in points))
    y_scale = Scale.covering([point.y for point in points], zero=False)
    marks = Markup("").join(
        _point(point, percent(x_scale.share(point.x)), down(y_scale, point.y), 1 + groups.index(point.group))
        for point in points
    )
    ticks = [(percent(x_scale.share(tick)), short_number(tick)) for tick in x_scale.ticks]
    plot = svg(
        HEIGHT, [grid(y_scale), labels_below(ticks), marks], "chart-plot chart-points", role="group", label=title
    )
    rows = [[point.label, point.group, exact_number(point.x), exact_number(point.y)] for point in points]
    legend = [(name, place + 1) for place, name in enumerate(groups)] if len(groups) > 1 else []
    summary = f"{title}: {len(points)} points. {y_label} by {x_label}."
    picture = frame(scale_left(y_scale), plot, summary)
    return figure(title, y_label, legend, picture, table(title, ["", "", x_label, y_label], rows), is_empty=not points)


def forest_plot(title: str, rows: Sequence[Interval], *, unit: str = "", better: str = "") -> Markup:
    """Effects with their intervals beside a line at zero. `better` says which side is good."""
    values = [bound for row in rows for bound in (row.low, row.value, row.high) if bound is not None]
    scale = Scale.covering(values)
    height = ROW * len(rows) + BOTTOM
    zero = percent(scale.share(0.0))
    ticks = [(percent(scale.share(tick)), short_number(tick)) for tick in scale.ticks]
    parts = [element("line", "chart-grid", x1=x, x2=x, y1=0, y2=ROW * len(rows)) for x, _ in ticks]
    parts.append(element("line", "chart-zero", x1=zero, x2=zero, y1=0, y2=ROW * len(rows)))
    parts += [_interval(row, ROW * place + ROW // 2, scale) for place, row in enumerate(rows)]
    parts.append(labels_below(ticks, height=height))
    names = Markup("").join(Markup('<li class="chart-row-name">{}</li>').format(row.label) for row in rows)
    rows_and_plot = Markup(
        '<div class="chart-frame chart-forest"><ul class="chart-row-names" aria-hidden="true">{}</ul>{}</div>'
    )
    picture = svg(
        height, parts, "chart-plot", role="img", label=f"{title}: {len(rows)} rows with intervals. {better}".strip()
    )
    cells = [[row.label, *map(optional, (row.value, row.low, row.high)), row.note] for row in rows]
    figures = table(title, ["", "value", "from", "to", "note"], cells)
    return figure(title, unit, [], rows_and_plot.format(names, picture), figures, note=better, is_empty=not rows)


def _point(point: Point, x: str, y: float, colour: int) -> Markup:
    words = f"{point.label}: {exact_number(point.y)}"
    kind = "chart-mark chart-marked" if point.is_marked else "chart-mark"
    dot = Markup('<circle class="{} {}" cx="{}" cy="{}" r="{}"><title>{}</title></circle>').format(
        kind, colour_class(colour), x, y, 7 if point.is_marked else 5, words
    )
    mark = Markup('<g class="chart-slot">{}{}</g>').format(
        dot, text("chart-value", words, x="100%", y=14, text_anchor="end")
    )
    return Markup('<a href="{}" aria-label="{}">{}</a>').format(point.href, words, mark) if point.href else mark


def _interval(row: Interval, y: int, scale: Scale) -> Markup:
    if row.value is None:
        return text("chart-note", row.note, x="50%", y=y + 4, text_anchor="middle")
    low, high = (row.value if bound is None else bound for bound in (row.low, row.high))
    side = "chart-below" if high < 0 else "chart-above" if low > 0 else "chart-open"
    words = f"{row.label}: {exact_number(row.value)} ({exact_number(low)} to {exact_number(high)}) {row.note}".rstrip()
    first, last = percent(scale.share(low)), percent(scale.share(high))
    return Markup('<g class="chart-interval {}"><title>{}</title>{}{}{}</g>').format(
        side,
        words,
        element("rect", "chart-hit", x="0", width="100%", y=y - ROW // 2, height=ROW),
        element("line", "chart-whisker", x1=first, x2=last, y1=y, y2=y),
        element("circle", "chart-mark", cx=percent(scale.share(row.value)), cy=y, r=5),
    )
