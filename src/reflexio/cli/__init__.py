"""The command line, `reflexio …`: one module for each group of commands. Errors of ours are one line and exit code 1.

A command parses its options and calls the server, or a service on the embedded database; it decides nothing itself.
"""

import sys


def main() -> None:
    """Runs the command line."""
    from reflexio.errors import ReflexioError

    try:
        from reflexio.cli.app import app
    except ModuleNotFoundError as error:
        if sys.argv[1:2] != ["mcp"] or error.name == "typer":
            sys.stderr.write(f"reflexio: {error}. Install the server: pip install 'reflexio-learn[server]'\n")
            sys.exit(1)
        from reflexio.cli.mcp import app  # with the extra `mcp` alone
    try:
        app()
    except ReflexioError as error:
        from reflexio.models.wording import without_hidden

        sys.stderr.write(f"reflexio: {without_hidden(str(error))}\n")
        sys.exit(1)
