"""`kill -9` at chosen moments: what was asked for is done, and a finished step is never made again."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.acceptance.durable_worker import STEPS

ROOT = Path(__file__).parents[2]
JOBS = ("a@l", "b@l", "c@m")


class Child:
    """A worker process, and what it says."""

    def __init__(self, folder: Path, moment: str, deaths: int, jobs: tuple[str, ...]) -> None:
        module = "tests.acceptance.durable_worker"
        command = [sys.executable, "-W", "error", "-m", module, str(folder), moment, str(deaths), *jobs]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_for(self, *lines: str) -> None:
        assert self.process.stdout is not None
        awaited = set(lines)
        for said in self.process.stdout:
            awaited.discard(said.strip())
            if not awaited:
                return
        raise AssertionError(f"never said {awaited}: {self.process.stderr and self.process.stderr.read()}")

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def finish(self) -> list[str]:
        said, complaints = self.process.communicate(timeout=60)
        assert (self.process.returncode, complaints) == (0, "")
        return said.splitlines()


@contextmanager
def worker(folder: Path, moment: str = "never", *, deaths: int = 50, jobs: tuple[str, ...] = JOBS) -> Iterator[Child]:
    with ExitStack() as stack:
        child = Child(folder, moment, deaths, jobs)
        stack.callback(child.kill)
        yield child


def killed_at(folder: Path, moment: str, *, deaths: int = 50, jobs: tuple[str, ...] = JOBS) -> None:
    with worker(folder, moment, deaths=deaths, jobs=jobs) as child:
        child.wait_for("asked", f"reached {moment}")
        child.kill()


def count(folder: Path) -> Counter[str]:
    return Counter((folder / "steps.log").read_text().splitlines())


def done(*jobs: str) -> list[str]:
    return [f"{job} done {[f'{job} {step}' for step in STEPS]}" for job in jobs]


@pytest.mark.parametrize("moment", ["before a two", "before a three", "after a", "before b one"])
def test_killed_between_steps_no_step_is_made_again(tmp_path: Path, moment: str) -> None:
    killed_at(tmp_path, moment)
    with worker(tmp_path) as child:
        assert child.finish() == ["asked", *done("a", "b", "c"), "closed"]
    made = count(tmp_path)
    assert {made[f"{what} {job} {step}"] for what in ("begin", "end") for job in "ab" for step in STEPS} == {1}
    # The other lane was somewhere, perhaps inside a step.
    assert {made[f"end c {step}"] for step in STEPS} <= {1, 2}


@pytest.mark.parametrize("step", STEPS)
def test_killed_inside_a_step_that_step_alone_is_made_again(tmp_path: Path, step: str) -> None:
    killed_at(tmp_path, f"inside a {step}", jobs=("a@l", "b@l"))
    with worker(tmp_path, jobs=("a@l", "b@l")) as child:
        assert child.finish() == ["asked", *done("a", "b"), "closed"]
    made = count(tmp_path)
    assert made.pop(f"begin a {step}") == 2
    assert set(made.values()) == {1}


def test_killed_again_and_again_each_finished_step_counts_once(tmp_path: Path) -> None:
    for moment in [f"{where} a {step}" for step in STEPS for where in ("before", "inside")]:
        killed_at(tmp_path, moment, jobs=("a@l",))
    with worker(tmp_path, jobs=("a@l",)) as child:
        assert child.finish() == ["asked", *done("a"), "closed"]
    made = count(tmp_path)
    for step in STEPS:
        assert (made[f"begin a {step}"], made[f"end a {step}"]) == (2, 1)


def test_what_was_asked_for_is_done_by_a_process_that_does_not_ask_again(tmp_path: Path) -> None:
    killed_at(tmp_path, "inside a one", jobs=tuple(f"{name}@l" for name in "abcdef"))
    with worker(tmp_path, jobs=("last@l",)) as child:
        assert child.finish() == ["asked", *done("last"), "closed"]
    ends = [line for line in (tmp_path / "steps.log").read_text().splitlines() if line.startswith("end")]
    assert ends == [f"end {job} {step}" for job in (*"abcdef", "last") for step in STEPS]


def test_a_second_process_is_turned_away_until_the_first_is_gone(tmp_path: Path) -> None:
    with worker(tmp_path, "inside a one") as first:
        first.wait_for("reached inside a one")
        with worker(tmp_path) as second:
            said = second.finish()
        assert said[0].startswith(f"taken: Another Reflexio process works on {str(tmp_path)!r} already; stop it")
        assert count(tmp_path)["begin a one"] == 1
        first.kill()
        with worker(tmp_path) as third:
            assert third.finish() == ["asked", *done("a", "b", "c"), "closed"]


def test_a_job_that_kills_its_process_is_set_aside_in_the_end(tmp_path: Path) -> None:
    for _ in range(3):
        killed_at(tmp_path, "inside a one", deaths=3, jobs=("a@l", "b@l"))
    with worker(tmp_path, "inside a one", deaths=3, jobs=("a@l", "b@l")) as child:
        assert child.finish() == ["asked", "a failed None", *done("b"), "closed"]
    assert count(tmp_path)["begin a one"] == 3
