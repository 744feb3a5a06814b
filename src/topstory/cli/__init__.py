"""Arguments in, one library call, answer out: the `topstory` command."""

import sys


def main() -> None:
    """Run the command that the arguments name."""
    try:
        from topstory.cli.app import app

        app(prog_name="topstory")
    except KeyboardInterrupt:  # before a command took over
        print("interrupted", file=sys.stderr)
        sys.exit(130)
