from pathlib import Path

from tests.docs.markdown import Page, anchor

PAGE = """# Title

```python
print(1)
```

<!-- fragment: `agent` stands for your own. -->

```python
agent.run()
```

<!-- fragment: -->

```python
print(2)
```

## Second [part](else.md#there)
"""


def test_only_an_explained_mark_makes_a_fragment(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    blocks = Page(path).blocks()
    assert [(block.line, block.fragment) for block in blocks] == [(4, False), (10, True), (16, False)]


def test_links_and_headings_are_found_outside_of_code(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    assert Page(path).links() == ["else.md#there"]
    assert "print(1)" not in Page(path).prose()
    assert anchor("GET /api/whoami") == "get-apiwhoami"
