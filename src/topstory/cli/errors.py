"""How a command fails: one sentence on standard error and an exit status, never a traceback."""

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import NoReturn, ParamSpec

import typer

from topstory.extras import MissingExtra

P = ParamSpec("P")

FAILED, INTERRUPTED = 1, 130  # exit statuses


def reports_errors(command: Callable[P, None]) -> Callable[P, None]:
    """The command with its errors printed as one sentence; TOPSTORY_DEBUG=1 adds the traceback.

    >>> @reports_errors
    ... def broken() -> None:
    ...     raise ValueError("alpha must be >= 0")
    >>> try:
    ...     broken()
    ... except typer.Exit as exit:
    ...     print("exit status", exit.exit_code)
    exit status 1
    """

    @wraps(command)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except (typer.Exit, typer.BadParameter):
            raise
        except KeyboardInterrupt as stop:
            _exit(str(stop) or "interrupted", INTERRUPTED)
        except BrokenPipeError:
            # The reader, such as `head`, has closed the pipe. Python would flush to it at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except (OSError, ValueError, MissingExtra) as error:
            _fail(_sentence(error))
        except MemoryError as error:
            _fail(_sentence(error) if error.args else "out of memory")
        except Exception as error:
            _fail(
                f"unexpected {type(error).__name__}: {_sentence(error)} "
                "(set TOPSTORY_DEBUG=1 to see the traceback)"
            )

    return wrapper


def _fail(sentence: str) -> NoReturn:
    if os.environ.get("TOPSTORY_DEBUG") == "1":
        import traceback

        traceback.print_exc()
    _exit(f"topstory: {sentence}", FAILED)


def _exit(message: str, status: int) -> NoReturn:
    print(message, file=sys.stderr)
    raise typer.Exit(status) from None


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        file = f"{error.filename}: " if error.filename else ""
        return f"{file}{error.strerror}"
    return " ".join(str(error).split())
