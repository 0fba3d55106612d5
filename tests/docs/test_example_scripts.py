"""The scripts in examples/ run on this machine alone and print what their comments promise."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT

SCRIPTS = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_script_prints_what_its_comments_promise(script: Path, server: str, tmp_path: Path) -> None:
    # A proxy that does not exist: a call to another machine fails.
    dead_proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
    completed = subprocess.run(
        [sys.executable, script],
        env={**os.environ, **dead_proxies, "REFLEXIO_URL": server},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.splitlines() == re.findall(r"^# > (.*)$", script.read_text(), flags=re.MULTILINE)


def test_there_is_one_for_each_adapter() -> None:
    adapters = {path.stem for path in (ROOT / "src" / "reflexio" / "agents" / "adapters").glob("[a-z]*.py")}
    assert {adapter for adapter in adapters if any(script.stem.startswith(adapter) for script in SCRIPTS)} == adapters
