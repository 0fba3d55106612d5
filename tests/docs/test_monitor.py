"""Every metric that the page and the dashboard name exists, and the page names all of them."""

import json
import re
from collections.abc import Iterator
from typing import Any

from reflexio.server.latency import ROUTE_CLASSES
from reflexio.server.metrics import METRICS
from tests.docs.markdown import ROOT, page

PAGE = page("docs/how-to/monitor.md")
NAME = re.compile(r"\breflexio_([a-z_]+[a-z])")
DASHBOARD = json.loads((ROOT / "deploy/grafana/reflexio.json").read_text())


def metrics_in(text: str) -> set[str]:
    """Names of metrics, without the endings of a histogram's parts."""
    histograms = "|".join(name for name, (kind, _) in METRICS.items() if kind == "histogram")
    names = NAME.findall(text)
    return {re.sub(rf"^({histograms})_(bucket|sum|count)$", r"\1", name) for name in names} - {"process", "job"}


def expressions(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if "expr" in part:
            yield part["expr"]
        for value in part.values():
            yield from expressions(value)
    elif isinstance(part, list):
        for value in part:
            yield from expressions(value)


def test_the_page_names_every_metric_and_no_other() -> None:
    assert metrics_in(PAGE.sections()["Metrics"]) == set(METRICS)
    assert metrics_in(PAGE.path.read_text()) == set(METRICS)


def test_alerts_and_panels_use_metrics_that_exist_each_with_the_right_function() -> None:
    alerts = PAGE.sections()["What to alert on"]
    for text in [*re.findall(r"`([^`]*reflexio_[^`]*)`", alerts), *expressions(DASHBOARD)]:
        names = metrics_in(text)
        assert names
        assert names <= set(METRICS), text
        assert text.count("(") == text.count(")")
        has_rate = "rate(" in text or "increase(" in text
        assert has_rate == any(METRICS[name][0] != "gauge" for name in names), text


def test_the_dashboard_shows_every_metric_and_its_panels_do_not_overlap() -> None:
    assert metrics_in(" ".join(expressions(DASHBOARD))) == set(METRICS)
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        columns, rows = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
        cells = {(column, row) for column in columns for row in rows}
        assert max(columns) < 24
        assert not cells & taken, panel["title"]
        taken |= cells
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))


def test_the_page_names_every_class_of_routes() -> None:
    text = PAGE.sections()["Metrics"]
    assert set(re.findall(r"`(\w+)`", text.partition("Classes of `route`")[2])) - {"publish"} | {"publish"} == {
        *ROUTE_CLASSES
    }
    assert set(re.findall(r'route="(\w+)"', PAGE.path.read_text())) <= set(ROUTE_CLASSES)
