"""The command line: each command parses its arguments, calls the library, and prints a report."""

import sys


def main() -> None:
    """Run the command given by the arguments."""
    try:
        from topstory.cli.app import app

        app(prog_name="topstory")
    except KeyboardInterrupt:  # while the commands are still being imported
        print("interrupted", file=sys.stderr)
        sys.exit(130)
