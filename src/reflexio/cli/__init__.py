"""The command line, `reflexio …`: one module for each group of commands. An error is one line that names the remedy.

A command parses its options and calls the server, or a service on the embedded database; it decides nothing itself.
"""

import sys


def main() -> None:
    """Runs the command line."""
    try:
        from reflexio.cli.app import app
        from reflexio.cli.exit_codes import run
    except ModuleNotFoundError as error:
        sys.stderr.write(f"reflexio: {error}. Install the server: pip install 'reflexio-learn[server]'\n")
        sys.exit(1)
    sys.exit(run(app))
