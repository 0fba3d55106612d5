"""The harness sees what it must see: a page with faults is not taken for a good one."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests.acceptance.browser.conftest import MakePage

BAD_PAGES = {
    "/console": "<script>console.error('broken')</script>",
    "/script": "<script>undefined.method()</script>",
    "/elsewhere": "<img alt='' src='http://localhost:9/picture.png'>",
    "/missing": "<img alt='' src='/not-there.png'>",
}
PAGE = "<!doctype html><html lang=en><head><title>t</title><link rel=icon href='data:,'></head><body>{}</body></html>"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = PAGE.format(BAD_PAGES.get(self.path, "<main><h1>Good</h1></main>")).encode()
        self.send_response(404 if self.path == "/not-there.png" else 200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Writes nothing."""


@contextmanager
def _serve() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("path", BAD_PAGES)
def test_a_bad_page_has_faults(make_page: MakePage, path: str) -> None:
    with _serve() as url:
        watched = make_page(url)
        watched.open(path).wait_for_timeout(100)
        assert watched.faults
        watched.faults.clear()


def test_a_good_page_has_none(make_page: MakePage) -> None:
    with _serve() as url:
        watched = make_page(url)
        watched.open("/good")
        assert not watched.faults
        assert not watched.axe_faults()


def test_axe_finds_a_picture_without_a_text_and_grey_on_grey(make_page: MakePage) -> None:
    with _serve() as url:
        watched = make_page(url)
        page = watched.open("/good")
        page.set_content(
            "<html lang=en><title>t</title><main><h1>H</h1><img src='data:,'>"
            "<p style='color:#999;background:#aaa'>hard to read</p></main>"
        )
        found = "\n".join(watched.axe_faults())
        assert "image-alt" in found
        assert "color-contrast" in found
        watched.faults.clear()
