"""How a command ends: its exit code, and one line on standard error when it failed.

0  done
1  not done, or something was found that a person must do
2  the command line is wrong
3  no server answers, or the server could not start
4  the key is missing, refused, or lacks the scope
130  interrupted by Ctrl-C
"""

import io
import os
import sys
from typing import NoReturn

import typer

from reflexio.errors import InvalidRequest, NotAuthorised, ReflexioError, ServerUnreachable

DONE, FAILED, WRONG_COMMAND, NO_SERVER, NOT_AUTHORISED, INTERRUPTED = 0, 1, 2, 3, 4, 130
BROKEN_PIPE = 141
"""What a shell says of a program whose reader has gone, as in `reflexio search … | head`."""
HELP = "NoArgsIsHelpError"


def run(app: typer.Typer) -> int:
    """Runs the command line and returns its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal of another encoding gets escapes, not an error
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = app(standalone_mode=False, prog_name="reflexio")
        sys.stdout.flush()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else FAILED
    except BrokenPipeError:
        # Python would complain once more when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (ReflexioError, OSError, typer.TyperException, typer.Abort, KeyboardInterrupt) as error:
        return _report(error)
    return code if isinstance(code, int) else DONE


def fail(message: str, code: int = FAILED) -> NoReturn:
    """Ends the command with one line on standard error."""
    _say(message)
    raise typer.Exit(code)


def _report(error: BaseException) -> int:
    match error:
        case KeyboardInterrupt() | typer.Abort():
            if sys.stderr.isatty():  # behind the ^C that the terminal shows
                sys.stderr.write("\n")
            _say("Interrupted.")
            return INTERRUPTED
        case typer.TyperException():
            return _report_usage(error)
        case InvalidRequest(errors=[_, *_] as errors):
            _say("; ".join([str(error).rstrip("."), *map(_problem, errors)]))
            return FAILED
        case OSError():
            name = f"{os.fspath(error.filename)!r}: " if error.filename else ""
            _say(f"{name}{error.strerror or error}")
            return FAILED
        case ServerUnreachable():
            _say(str(error))
            return NO_SERVER
        case NotAuthorised():
            _say(str(error))
            return NOT_AUTHORISED
        case _:
            _say(str(error))
            return FAILED


def _report_usage(error: typer.TyperException) -> int:
    """A wrong command line. Without a command, its help is the message."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == HELP:
        sys.stderr.write(error.format_message().rstrip() + "\n")
    else:
        hint = f" See `{context.command_path} --help`." if context else ""
        message = error.format_message().rstrip(".")
        _say(f"{message}{'' if message.endswith('?') else '.'}{hint}")
    return WRONG_COMMAND


def _problem(detail: dict[str, object]) -> str:
    """One finding of the server about a field."""
    place = detail.get("loc")
    parts = [str(part) for part in place if part not in ("body", "query")] if isinstance(place, list | tuple) else []
    return f"{'.'.join(parts)}: {detail.get('msg', 'is not valid')}" if parts else str(detail.get("msg", "not valid"))


def _say(message: str) -> None:
    from reflexio.models.wording import without_hidden

    sys.stderr.write(f"reflexio: {without_hidden(' '.join(message.split()))}\n")
