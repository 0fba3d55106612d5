"""Pages as a browser without scripts uses them: sign in, open a page, fill in one of its forms and send it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser

import httpx

from tests.conftest import Org

BROWSER = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}
Pairs = list[tuple[str, str]]


@dataclass
class PageForm:
    """A form of a page: where it is sent, and what its fields hold."""

    action: str = ""
    form_id: str = ""
    fields: Pairs = field(default_factory=list)


class _FormReader(HTMLParser):
    """Reads all forms of a page, also fields that name their form."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[PageForm] = []
        self._by_id: dict[str, PageForm] = {}
        self._open: PageForm | None = None
        self._area: tuple[str, PageForm | None] | None = None
        self._text = ""
        self._select = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        if tag == "form":
            self._open = self._by_id.setdefault(values.get("id", f"form {len(self.forms)}"), PageForm())
            self._open.action, self._open.form_id = values.get("action", ""), values.get("id", "")
            self.forms.append(self._open)
        form = self._by_id.setdefault(values["form"], PageForm()) if "form" in values else self._open
        if tag == "input" and values.get("name"):
            is_box = values.get("type") in ("checkbox", "radio")
            if form is not None and (not is_box or "checked" in values):
                form.fields.append((values["name"], values.get("value", "on" if is_box else "")))
        elif tag == "textarea":
            self._area, self._text = (values.get("name", ""), form), ""
        elif tag == "select":
            self._select = values.get("name", "")
        elif tag == "option" and "selected" in values and self._open is not None:
            self._open.fields.append((self._select, values.get("value", "")))

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._area and self._area[1] is not None:
            # The first line end after the tag is no part of the text.
            self._area[1].fields.append((self._area[0], self._text.removeprefix("\n")))
        if tag == "form":
            self._open = None


@dataclass(frozen=True)
class OpenedPage:
    """A page as it came."""

    response: httpx.Response

    @property
    def text(self) -> str:
        return self.response.text

    @property
    def status(self) -> int:
        return self.response.status_code

    @property
    def forms(self) -> list[PageForm]:
        reader = _FormReader()
        reader.feed(self.text)
        return reader.forms

    def form(self, action: str, *, form_id: str = "") -> PageForm:
        """The form that is sent to this path, the first one or that with an id."""
        found = [
            form for form in self.forms if form.action.partition("?")[0] == action and form_id in ("", form.form_id)
        ]
        assert found, f"no form for {action} among {[form.action for form in self.forms]}"
        return found[0]

    def has_form(self, action: str) -> bool:
        return any(form.action.partition("?")[0] == action for form in self.forms)


class PageBrowser:
    """A signed-in browser."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    def open(self, path: str, status: int = 200) -> OpenedPage:
        response = self.client.get(path)
        assert response.status_code == status, f"{path}: {response.status_code} {response.text[:2000]}"
        return OpenedPage(response)

    def send(self, form: PageForm, *more: tuple[str, str], **changes: str) -> OpenedPage:
        """Sends a form with changes, and goes where the answer leads. `more` are ticked boxes and the like."""
        pairs = [(name, text) for name, text in form.fields if name not in changes]
        response = self.client.post(form.action, data=_joined([*pairs, *changes.items(), *more]))
        if response.status_code == 303:
            response = self.client.get(response.headers["location"])
        return OpenedPage(response)


def _joined(pairs: Pairs) -> dict[str, list[str]]:
    data: dict[str, list[str]] = {}
    for name, text in pairs:
        data.setdefault(name, []).append(text)
    return data


@contextmanager
def browsing(org: Org, token: str = "") -> Iterator[PageBrowser]:
    """A browser that has signed in with the organisation's key, or with another one."""
    with httpx.Client(base_url=org.url, headers=BROWSER, timeout=30) as client:
        answer = client.post("/sign-in", data={"key": token or org.token, "next": "/"})
        assert answer.status_code == 303, answer.text[:500]
        yield PageBrowser(client)
