"""Writes `reflexio/client/sync` from `reflexio/client/aio`; with --check only says whether it is up to date."""

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).parent.parent / "src" / "reflexio" / "client"
NOTE = "# Generated from client/aio/{name} by scripts/make_sync_client.py. Change that file and run `make format`.\n"
WORDS = (
    (r"\basync (def|with|for) ", r"\1 "),
    (r"\bawait ", ""),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"import Awaitable, Callable", "import Callable"),
    (r"\bAsyncReflexioClient\b", "ReflexioClient"),
    (r"\bAsync(Background|Plain)\b", r"\1"),
    (r"\bhttpx\.Async(\w+)", r"httpx.\1"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAsyncGenerator\[(\w+), None\]", r"Generator[\1, None, None]"),
    (r"\bAsyncGenerator\b", "Generator"),
    (r"\baclosing\b", "closing"),
    (r"\b__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\baclose\b", "close"),
    (r"\ba(iter_lines|read)\b", r"\1"),
    (r"\bimport asyncio\b", "import time"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"\bclient\.aio\b", "client.sync"),
    (
        r"The asynchronous client\. The synchronous one in `reflexio\.client\.sync` is generated from this folder\.",
        "The synchronous client.",
    ),
)


def synchronous(source: str, name: str) -> str:
    for asynchronous, plain in WORDS:
        source = re.sub(asynchronous, plain, source)
    return _formatted(NOTE.format(name=name) + source)


def _formatted(source: str) -> str:
    ruff = Path(sys.executable).parent / "ruff"
    for command in (["check", "--select", "I", "--fix-only", "--quiet"], ["format", "--quiet"]):
        done = subprocess.run(
            [ruff, *command, "--stdin-filename", CLIENT / "sync" / "generated.py", "-"],
            input=source,
            capture_output=True,
            text=True,
            check=True,
        )
        source = done.stdout
    return source


def main() -> int:
    wanted = {file.name: synchronous(file.read_text(), file.name) for file in sorted((CLIENT / "aio").glob("*.py"))}
    target = CLIENT / "sync"
    found = {file.name: file.read_text() for file in target.glob("*.py")}
    if "--check" in sys.argv[1:]:
        if found == wanted:
            return 0
        sys.stderr.write("client/sync is not what client/aio makes: run `make format`\n")
        return 1
    target.mkdir(exist_ok=True)
    for name in found.keys() - wanted.keys():
        (target / name).unlink()
    for name, source in wanted.items():
        (target / name).write_text(source)
    return 0


if __name__ == "__main__":
    sys.exit(main())
