"""Debian's Chromium, driven by Playwright, and pages that remember whatever went wrong in them."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
MISSING = "There is no Chromium: `make test` installs it as root on Debian; elsewhere install `chromium`."
SWITCHES = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
]  # fmt: skip
"""No sandbox: Chromium refuses to use it as root, and the pages are ours."""
Theme = Literal["light", "dark"]
DESKTOP, PHONE = (1280, 860), (390, 844)
AXE = Path(__file__).parent / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")
RUN_AXE = "() => axe.run(document, {resultTypes: ['violations']})"


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class WatchedPage:
    """A page of a browser on one server. `faults` is what no page of ours may do."""

    page: Page
    url: str
    faults: list[str] = field(default_factory=list)
    expected_statuses: set[int] = field(default_factory=set)
    """Statuses of error pages that a test asks for on purpose."""

    def __post_init__(self) -> None:
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.faults.append(f"error in a script: {error}"))
        self.page.on("requestfailed", self._on_failure)
        self.page.on("request", self._on_request)
        self.page.on("response", self._on_response)

    def open(self, path: str) -> Page:
        """Opens a path of the server and returns the page."""
        self.page.goto(f"{self.url}{path}")
        return self.page

    def axe_faults(self) -> list[str]:
        """What axe-core finds serious or critical in the page as it is now."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found: dict[str, Any] = self.page.evaluate(RUN_AXE)
        return [
            f"{fault['id']} ({fault['impact']}): {fault['help']} at {node['html'][:160]} {_colours(node)}"
            for fault in found["violations"]
            if fault["impact"] in SERIOUS
            for node in fault["nodes"]
        ]

    def _on_console(self, message: ConsoleMessage) -> None:
        is_status = "Failed to load resource" in message.text and self.expected_statuses
        if message.type in ("error", "warning") and not is_status:
            self.faults.append(f"console {message.type}: {message.text}")

    def _on_failure(self, request: Request) -> None:
        # A page that is left ends its open requests, such as the live progress of an operation.
        if request.failure != "net::ERR_ABORTED":
            self.faults.append(f"failed request: {request.url} {request.failure}")

    def _on_request(self, request: Request) -> None:
        place = urlsplit(request.url)
        if place.scheme not in ("data", "blob") and f"{place.scheme}://{place.netloc}" != self.url:
            self.faults.append(f"request to elsewhere: {request.url}")

    def _on_response(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self.expected_statuses:
            self.faults.append(f"{response.status}: {response.url}")


def _colours(node: dict[str, Any]) -> str:
    """What axe says about contrast."""
    return "; ".join(str(check.get("message", "")) for check in node.get("any", []))[:200]


@contextmanager
def watched_page(
    browser: Browser, url: str, *, theme: Theme = "light", size: tuple[int, int] = DESKTOP, scripts: bool = True
) -> Iterator[WatchedPage]:
    """A page in a fresh session of the browser."""
    viewport: Any = {"width": size[0], "height": size[1]}
    context = browser.new_context(
        color_scheme=theme, viewport=viewport, java_script_enabled=scripts, reduced_motion="reduce", locale="en-GB"
    )
    context.set_default_timeout(10_000)
    try:
        yield WatchedPage(context.new_page(), url.rstrip("/"))
    finally:
        context.close()
