"""Takes the pictures in docs/images from the demo data: `make screenshots`."""

import asyncio
import io
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page

from reflexio.cli.demo_shop.fill import fill
from reflexio.server.process import running_server
from tests.acceptance.browser.browsing import CHROMIUM, MISSING, PHONE, Theme, chromium, watched_page

FOLDER = Path(__file__).parents[3] / "docs" / "images"
SIZE = (1280, 800)
COLOURS = 256
MESSAGE = "My parcel is marked delivered, but it is not here."


def main() -> int:
    if CHROMIUM is None:
        print(MISSING, file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(fill(Path(folder), lambda done, total: None, end=datetime.now(UTC)))
        with running_server(Path(folder)) as url, chromium() as browser:
            for theme in ("light", "dark"):
                take_all(browser, url, theme)
            with watched_page(browser, url, size=PHONE) as watched:
                save(open_page(watched.open("/learnings?review=approved"), "a.row-title"), "phone")
    return 0


def take_all(browser: Browser, url: str, theme: Theme) -> None:
    with watched_page(browser, url, theme=theme, size=SIZE) as watched:
        save(watched.open("/"), f"overview-{theme}")
        if theme == "dark":
            return
        page = watched.open("/learnings?review=approved&q=refund+neighbours")
        save(open_page(page, "a.row-title"), "playbook")
        page.locator("svg.lineage a.quote").first.click()
        page.wait_for_url("**/conversations/session*")
        page.evaluate("scrollTo(0, 0)")
        save(page, "conversation")
        page = watched.open("/review")
        page.locator(".waiting a").last.click()
        page.wait_for_url("**/review?playbook=*")
        save(page, "review")
        save(open_page(watched.open("/optimisations"), "main table a"), "optimiser")
        page = watched.open("/playground?user=rosa.marchetti&version=shop-2")
        page.locator("main textarea, main input[name=message]").first.fill(
            "My parcel is marked delivered, but it is not here."
        )
        page.locator("main form button").first.click()
        page.wait_for_load_state("networkidle")
        save(page, "playground")


def open_page(page: Page, link: str) -> Page:
    """Follows the first link of this kind."""
    page.locator(link).first.click()
    page.wait_for_load_state()
    return page


def save(page: Page, name: str) -> None:
    """A picture of what is in sight, in few colours."""
    picture = Image.open(io.BytesIO(page.screenshot()))
    picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    sys.exit(main())
