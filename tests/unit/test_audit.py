"""`make audit`: what it asks the index, and what it says about the answers."""

from typing import Any

import httpx
import pytest
from scripts import audit
from scripts.audit import Hole, IndexSilent, find_holes, fits, pinned, read_holes

HOLE = {
    "id": "PYSEC-2031-7",
    "aliases": ["CVE-2031-1"],
    "summary": "Reads\nwhat it should not.",
    "fixed_in": ["2.0"],
    "withdrawn": None,
}
PINS = [("good", "1.0"), ("bad", "1.0"), ("strange", "1.0")]
ADDRESS = "https://index.example/pypi"


def index(answers: dict[str, Any]) -> httpx.Client:
    def answer(request: httpx.Request) -> httpx.Response:
        name = request.url.path.split("/")[2]
        return httpx.Response(200, json=answers[name]) if name in answers else httpx.Response(404)

    return httpx.Client(transport=httpx.MockTransport(answer))


def test_pins_are_read_without_comments_and_markers() -> None:
    text = "# a comment\nhttpx==0.28.1\nuvloop==0.22 ; sys_platform != 'win32'\n\nloose>=1\n"
    assert pinned(text) == [("httpx", "0.28.1"), ("uvloop", "0.22")]


def test_known_holes_are_named_with_their_remedy() -> None:
    answers = {"good": {"vulnerabilities": []}, "bad": {"vulnerabilities": [HOLE, {**HOLE, "withdrawn": "2031-02-01"}]}}
    holes, unanswered = find_holes(PINS, ADDRESS, index(answers))
    assert [str(hole) for hole in holes] == [
        "bad 1.0: PYSEC-2031-7 CVE-2031-1, fixed in 2.0. Reads what it should not."
    ]
    assert unanswered == [("strange", "1.0")]


@pytest.mark.parametrize("answers", [{}, {"good": {"info": {}}}, {"good": []}], ids=["nothing", "no holes", "a list"])
def test_an_index_without_answers_is_silent_and_not_sound(answers: dict[str, Any]) -> None:
    with pytest.raises(IndexSilent):
        find_holes(PINS, ADDRESS, index(answers))


def test_an_index_out_of_reach_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit, "index_address", lambda: "http://127.0.0.1:9/pypi")
    assert audit.check_holes()
    (line,) = capsys.readouterr().out.splitlines()
    assert "cannot be asked here (ConnectError)" in line


def test_the_index_is_that_of_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    index = "https://packages.example"
    monkeypatch.setenv("PIP_INDEX_URL", f"{index}/simple/")
    assert audit.index_address() == f"{index}/pypi"


@pytest.mark.parametrize(
    ("words", "fitting"),
    [
        ("MIT", True),
        ("LGPL-3.0-only", True),
        ("GNU Lesser General Public License v3 (LGPLv3)", True),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", True),
        ("GPL-2.0-only OR MIT", True),
        ("GPL-3.0-or-later", False),
        ("GNU Affero General Public License v3", False),
        ("AGPL-3.0-only", False),
    ],
)
def test_licences_that_would_bind_our_own_code_do_not_fit(words: str, fitting: bool) -> None:
    assert fits(words) is fitting


def test_a_hole_without_a_fix_says_so() -> None:
    (hole,) = read_holes("bad", "1.0", {"vulnerabilities": [{**HOLE, "fixed_in": []}]})
    assert isinstance(hole, Hole)
    assert "no fixed version yet" in str(hole)
