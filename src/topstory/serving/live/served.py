"""The service of the live demo, as a process: `python -m topstory.serving.live.served FILE`."""

import sys
from pathlib import Path

import msgspec

from topstory.serving.config.schema import Config
from topstory.serving.server import serve


def main() -> None:
    """Serve the configuration in a file of JSON."""
    config = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Config)
    try:
        serve(config, lambda line: print(line, flush=True))
    except (OSError, ValueError) as error:
        sys.exit(f"topstory: {error}")


if __name__ == "__main__":
    main()
