"""Runs a program within limits. Started as a script of its own, so it imports nothing but the standard library.

Arguments: memory in bytes, seconds of processor, bytes a file may have, and then either `run` with a solution, its
tests and a file to leave when they have passed, or `exec` with a command.
"""

import sys

NOT_STARTED = 127  # as shells say it


def limit(memory: int, seconds: int, file_size: int) -> None:
    try:
        import resource
    except ImportError:  # not a POSIX system: the clock of the parent is the only limit
        return
    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, file_size),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))


def run(solution: str, tests: str, passed: str) -> None:
    """The tests see the names of the solution, as if they stood below it.

    Only reaching the end counts: a solution that ends the process early has passed nothing.
    """
    import traceback
    import types

    sys.argv = [solution]  # the rest is no business of theirs, least of all the file that says that they passed
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    for path in (solution, tests):
        with open(path, encoding="utf-8") as file:
            source = file.read()
        try:
            exec(compile(source, path, "exec"), module.__dict__)  # noqa: S102  this is what it is for
        except Exception as error:  # noqa: BLE001  told without the lines of this file, which mean nothing to a reader
            traceback.print_exception(error.with_traceback(error.__traceback__ and error.__traceback__.tb_next))
            sys.exit(1)
    with open(passed, "x"):
        pass


def main(memory: str, seconds: str, file_size: str, what: str, *given: str) -> None:
    limit(int(memory), int(seconds), int(file_size))
    if what == "run":
        run(*given)
    else:
        import os

        try:
            os.execvp(given[0], given)  # noqa: S606  no shell on purpose
        except OSError as error:
            print(f"{given[0]}: {error.strerror}")
            sys.exit(NOT_STARTED)


if __name__ == "__main__":
    main(*sys.argv[1:])
