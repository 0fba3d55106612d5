"""The list of pages at the side, without those that nobody has declared or that the visitor's key may not see."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reflexio.dashboard.routing import PageRoute
from reflexio.models.access import KeyScope

if TYPE_CHECKING:
    from reflexio.dashboard.visit import Visit


@dataclass(frozen=True)
class Entry:
    path: str
    name: str
    icon: str
    group: str


ENTRIES = (
    Entry("/", "Overview", "overview", ""),
    Entry("/conversations", "Conversations", "conversations", "Look"),
    Entry("/learnings", "Learnings", "learnings", "Look"),
    Entry("/review", "Review", "review", "Decide"),
    Entry("/playground", "Playground", "playground", "Decide"),
    Entry("/optimisations", "Optimiser", "optimisations", "Decide"),
    Entry("/versions", "Versions", "versions", "Decide"),
    Entry("/operations", "Operations", "operations", "Run"),
    Entry("/settings", "Settings", "settings", "Run"),
    Entry("/status", "Status", "status", "Run"),
)
"""The icons are in templates/icons.html."""


@dataclass(frozen=True)
class Item:
    """An entry as one visitor sees it on one page."""

    entry: Entry
    is_current: bool


class Navigation:
    def __init__(self, routes: Collection[PageRoute]) -> None:
        self._scopes: dict[str, KeyScope | None] = {
            route.path: route.scope for route in routes if route.method == "GET"
        }

    def of(self, visit: "Visit") -> list[tuple[str, list[Item]]]:
        """The items that the visitor may see, by group."""
        if visit.visitor.caller is None:
            return []
        groups: dict[str, list[Item]] = {}
        for entry in ENTRIES:
            if self.has(visit, entry.path):
                groups.setdefault(entry.group, []).append(Item(entry, self._is_current(visit.path, entry.path)))
        return list(groups.items())

    def has(self, visit: "Visit", path: str) -> bool:
        return path in self._scopes and self._permits(visit, path)

    def _permits(self, visit: "Visit", path: str) -> bool:
        scope = self._scopes[path]
        return scope is None or visit.may(scope)

    @staticmethod
    def _is_current(path: str, entry: str) -> bool:
        own = "/learnings" if path.startswith("/playbooks") else path
        return own == entry or (entry != "/" and own.startswith(f"{entry}/"))
