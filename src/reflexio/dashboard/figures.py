"""The parts that all charts are made of: the figure with its legend and table, axes, and SVG elements."""

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from reflexio.dashboard.scales import Scale, exact_number, short_number

HEIGHT = 200
TOP, BOTTOM = 24, 24
"""Room above the plot for the values under the pointer, and below it for the labels of the axis."""
PLOT = HEIGHT - TOP - BOTTOM
GUTTER = 44
COLOURS = 6


def svg(
    height: int, parts: Sequence[Markup], kind: str, *, width: str = "100%", role: str = "", label: str = ""
) -> Markup:
    """A picture. Without a role, screen readers leave it out: words beside it say the same."""
    named = Markup(' role="{}" aria-label="{}"').format(role, label) if role else Markup(' aria-hidden="true"')
    head = Markup('<svg class="{}" width="{}" height="{}" focusable="false"{}>').format(kind, width, height, named)
    return head + Markup("").join(parts) + Markup("</svg>")


def frame(scale: Markup, plot: Markup, summary: str) -> Markup:
    """The axis and the plot beside each other, with a sentence for who cannot see them."""
    return Markup('<div class="chart-frame"><p class="visually-hidden">{}</p>{}{}</div>').format(summary, scale, plot)


def figure(
    title: str,
    unit: str,
    legend: Sequence[tuple[str, int]],
    frame: Markup,
    table: Markup,
    *,
    is_empty: bool,
    note: str = "",
) -> Markup:
    """A whole chart. `legend` has names and colours."""
    keys = Markup("").join(
        Markup('<li class="chart-key {}">{}</li>').format(colour_class(colour), name) for name, colour in legend
    )
    head = Markup('<figcaption class="chart-head"><span class="chart-title">{}</span>{}{}</figcaption>').format(
        title,
        Markup('<span class="chart-unit">{}</span>').format(unit) if unit else "",
        Markup('<ul class="chart-legend">{}</ul>').format(keys) if legend else "",
    )
    if is_empty:
        return Markup('<figure class="chart">{}<p class="chart-empty">Nothing to show yet.</p></figure>').format(head)
    aside = Markup('<p class="chart-note-below">{}</p>').format(note) if note else Markup("")
    return Markup('<figure class="chart">{}{}{}{}</figure>').format(head, frame, aside, table)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """The figures of a chart, folded. The first cell of a row is its heading."""
    heads = Markup("").join(
        Markup('<th scope="col">{}</th>').format(name) if name else Markup("<td></td>") for name in columns
    )
    body = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            row[0], Markup("").join(Markup("<td>{}</td>").format(cell) for cell in row[1:])
        )
        for row in rows
    )
    return Markup(
        '<details class="chart-figures"><summary>Figures</summary><div class="chart-scroll" tabindex="0" role="region" '
        'aria-label="{0}"><table><caption class="visually-hidden">{0}</caption><thead><tr>{1}</tr></thead>'
        "<tbody>{2}</tbody></table></div></details>"
    ).format(title, heads, body)


def element(name: str, kind: str, **values: str | float) -> Markup:
    """An SVG element of a class. Underscores in names of attributes become hyphens."""
    attributes = Markup("").join(
        Markup(' {}="{}"').format(key.replace("_", "-"), value) for key, value in values.items()
    )
    return Markup('<{} class="{}"{}/>').format(name, kind, attributes)


def text(kind: str, words: str, **values: str | float) -> Markup:
    start = str(element("text", kind, **values)).removesuffix("/>")
    return Markup("{}>{}</text>").format(Markup(start), words)  # noqa: S704 - made of escaped parts


def grid(scale: Scale) -> Markup:
    return Markup("").join(
        element("line", "chart-zero" if tick == 0 else "chart-grid", x1="0", x2="100%", y1=y, y2=y)
        for tick in scale.ticks
        for y in [down(scale, tick)]
    )


def scale_left(scale: Scale) -> Markup:
    ticks = [text("chart-tick", short_number(tick), x=GUTTER - 8, y=down(scale, tick) + 4, text_anchor="end")
             for tick in scale.ticks]  # fmt: skip
    return svg(HEIGHT, ticks, "chart-scale", width=str(GUTTER))


def labels_below(ticks: Sequence[tuple[str, str]], *, height: int = HEIGHT) -> Markup:
    """Labels that would leave the picture begin or end at its edge."""
    return Markup("").join(
        text("chart-tick", words, x=x, y=height - 6, text_anchor=_anchor(float(x.removesuffix("%"))))
        for x, words in ticks
    )


def _anchor(percent: float) -> str:
    return "start" if percent < 5 else "end" if percent > 95 else "middle"


def colour_class(number: int) -> str:
    return f"chart-{(number - 1) % COLOURS + 1}"


def centre(place: int, count: int) -> str:
    return percent((place + 0.5) / count)


def percent(share: float) -> str:
    return f"{100 * share:.2f}%"


def down(scale: Scale, value: float) -> float:
    """How far below the top of the picture a value is."""
    return round(TOP + PLOT * (1 - scale.share(value)), 1)


def optional(value: float | None) -> str:
    return "–" if value is None else exact_number(value)


def are_whole(values: Iterable[float]) -> bool:
    return all(value == round(value) for value in values)
