"""New names do not repeat, neither in one process nor among its children."""

import os
import sys

import pytest

from reflexio.models.identity import new_id


def test_names_do_not_repeat() -> None:
    assert len({new_id() for _ in range(10_000)}) == 10_000


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(sys.platform == "win32", reason="there are no forks on Windows")
def test_children_of_one_process_make_other_names_than_it_and_each_other() -> None:
    names = {_name_of_a_child() for _ in range(3)} | {new_id()}
    assert len(names) == 4


def _name_of_a_child() -> str:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, new_id().encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as told:
        return told.read()
