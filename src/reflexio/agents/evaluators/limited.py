"""Runs a program within limits. It is started as a script, so it imports only the standard library.

Arguments: memory in bytes, seconds of processor time, bytes that a file may have; then either `run` with a solution,
its tests and a file to create when they have passed, or `exec` with a command.
"""

import sys

NOT_STARTED = 127  # the exit status of shells for a command that cannot be started


def limit(memory: int, seconds: int, file_size: int) -> None:
    try:
        import resource
    except ImportError:  # not a POSIX system: the timeout of the parent process is the only limit
        return
    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, file_size),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))


def run(solution: str, tests: str, passed: str) -> None:
    """Runs the tests, which see the names of the solution as if they were below it.

    Only reaching the end counts: a solution that ends the process early has not passed.
    """
    import traceback
    import types

    sys.argv = [solution]  # hides the other arguments, above all the file that says that the tests passed
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    for path in (solution, tests):
        with open(path, encoding="utf-8") as file:
            source = file.read()
        try:
            exec(compile(source, path, "exec"), module.__dict__)  # noqa: S102  this is its purpose
        except Exception as error:  # noqa: BLE001  printed without the lines of this file, which do not help a reader
            traceback.print_exception(error.with_traceback(error.__traceback__ and error.__traceback__.tb_next))
            sys.exit(1)
    with open(passed, "x"):
        pass


def main(memory: str, seconds: str, file_size: str, action: str, *args: str) -> None:
    limit(int(memory), int(seconds), int(file_size))
    if action == "run":
        run(*args)
    else:
        import os

        try:
            os.execvp(args[0], args)  # noqa: S606  no shell on purpose
        except OSError as error:
            print(f"{args[0]}: {error.strerror}")
            sys.exit(NOT_STARTED)


if __name__ == "__main__":
    main(*sys.argv[1:])
