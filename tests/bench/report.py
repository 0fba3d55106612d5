"""What was measured, where, and how it compares with what was wanted."""

import json
import os
import platform
import sqlite3
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Figure:
    """One measured number. `wanted` is a bound: at most, or at least when `more_is_better`."""

    name: str
    value: float
    unit: str
    wanted: float | None = None
    more_is_better: bool = False
    baseline: str = ""

    @property
    def reached(self) -> bool | None:
        if self.wanted is None:
            return None
        return self.value >= self.wanted if self.more_is_better else self.value <= self.wanted


@dataclass
class Report:
    sections: dict[str, list[Figure]] = field(default_factory=dict)
    paces: dict[str, float] = field(default_factory=dict)
    """How long a million additions took before each part: a machine that others use has slow minutes."""

    def measure(self, section: str, measure: Callable[[], list[Figure]]) -> None:
        self.paces[section] = pace()
        figures = measure()
        self.sections[section] = figures
        Console().print(_table(f"{section} (pace {self.paces[section] * 1000:.0f} ms)", figures))

    def write(self, path: Path) -> None:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        machine = {
            "cores": os.cpu_count(),
            "memory_gb": round(memory / 2**30, 1),
            "platform": platform.platform(),
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
        }
        figures = {
            name: [{**asdict(each), "reached": each.reached} for each in found] for name, found in self.sections.items()
        }
        path.write_text(json.dumps({"machine": machine, "pace_seconds": self.paces, "figures": figures}, indent=2))


def _table(section: str, figures: Sequence[Figure]) -> Table:
    table = Table(title=section, title_justify="left")
    for column in ("what", "measured", "wanted", "", "for comparison"):
        table.add_column(column)
    for each in figures:
        sign = "≥" if each.more_is_better else "≤"
        wanted = "" if each.wanted is None else f"{sign} {each.wanted:g} {each.unit}"
        mark = {None: "", True: "[green]reached[/green]", False: "[red]missed[/red]"}[each.reached]
        table.add_row(each.name, f"{each.value:.4g} {each.unit}", wanted, mark, each.baseline)
    return table


def pace() -> float:
    """The best of three, so that a hiccup does not count."""

    def once() -> float:
        began, total = time.perf_counter(), 0
        for number in range(1_000_000):
            total += number
        return time.perf_counter() - began

    return min(once() for _ in range(3))


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def milliseconds(seconds: Sequence[float]) -> tuple[float, float]:
    """Median and 95th percentile."""
    return statistics.median(seconds) * 1000, percentile(seconds, 0.95) * 1000
