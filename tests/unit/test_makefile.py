"""The virtual environment is made well or not at all, and one that was left half made is made anew."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
FINE = """#!/bin/sh
echo "$@" >> {log}
if [ "$2" = venv ]; then mkdir -p .venv/bin && cp "$0" .venv/bin/python; fi
"""
OLD = "#!/bin/sh\nexit 1\n"
WITHOUT_PIP = """#!/bin/sh
if [ "$2" = venv ]; then mkdir -p .venv/bin && cp "$0" .venv/bin/python; exit 1; fi
case "$2" in *pip*) exit 1;; esac
"""

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


def make(folder: Path, python: str) -> "subprocess.CompletedProcess[str]":
    for file in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / file, folder)
    script = folder / "python"
    script.write_text(python.replace("{log}", str(folder / "log")))
    script.chmod(0o755)
    command = ["make", f"PYTHON={script}", ".venv/.run"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("python", [OLD, WITHOUT_PIP], ids=["old", "without pip"])
def test_a_python_that_will_not_do_leaves_nothing_behind(tmp_path: Path, python: str) -> None:
    done = make(tmp_path, python)
    assert done.returncode != 0
    assert not (tmp_path / ".venv").exists()
    assert ("Reflexio needs Python 3.11 or later" in done.stderr) == (python == OLD)
    assert make(tmp_path, FINE).returncode == 0


@pytest.mark.parametrize("left", [OLD, WITHOUT_PIP], ids=["old", "without pip"])
def test_what_an_earlier_attempt_left_is_made_anew(tmp_path: Path, left: str) -> None:
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").write_text(left)
    (tmp_path / ".venv" / "bin" / "python").chmod(0o755)
    assert make(tmp_path, FINE).returncode == 0
    assert "-m venv --clear .venv" in (tmp_path / "log").read_text()


def test_one_that_is_fine_is_kept(tmp_path: Path) -> None:
    make(tmp_path, FINE)
    (tmp_path / ".venv" / ".run").unlink()
    (tmp_path / "log").unlink()
    assert make(tmp_path, FINE).returncode == 0
    assert "venv --clear" not in (tmp_path / "log").read_text()


WITHOUT_ONNXRUNTIME = FINE.replace("#!/bin/sh", '#!/bin/sh\ncase "$*" in *onnxruntime*) exit 1;; esac')


def test_a_system_without_onnxruntime_is_installed_all_the_same(tmp_path: Path) -> None:
    done = make(tmp_path, WITHOUT_ONNXRUNTIME)
    assert done.returncode == 0
    assert "the local embedder uses numpy" in done.stdout
    assert (tmp_path / ".venv" / ".run").exists()
