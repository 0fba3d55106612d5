"""`python -m reflexio` runs the command line."""

from reflexio.cli import main

if __name__ == "__main__":
    main()
