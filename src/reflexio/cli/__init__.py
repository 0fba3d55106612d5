"""The command line: `reflexio serve`, `reflexio keys …`, `reflexio optimise …`, `reflexio demo`."""

import sys

from reflexio.server.loading import loading


def main() -> None:
    with loading():
        from reflexio.cli.app import app
        from reflexio.errors import ReflexioError

    try:
        app()
    except ReflexioError as error:
        sys.stderr.write(f"reflexio: {error}\n")
        sys.exit(1)
