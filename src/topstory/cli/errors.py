"""What a command says when it cannot do its work: one sentence, never a traceback."""

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import NoReturn, ParamSpec

import typer

from topstory.extras import MissingExtra

P = ParamSpec("P")

FAILED, INTERRUPTED = 1, 130


def told(command: Callable[P, None]) -> Callable[P, None]:
    """The command, with its failures told in words; TOPSTORY_DEBUG=1 shows the traceback too.

    >>> @told
    ... def broken() -> None:
    ...     raise ValueError("alpha must be >= 0")
    >>> try:
    ...     broken()
    ... except typer.Exit as exit:
    ...     print("exit status", exit.exit_code)
    exit status 1
    """

    @wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except (typer.Exit, typer.BadParameter):
            raise
        except KeyboardInterrupt as stop:
            _say(str(stop) or "interrupted", INTERRUPTED)
        except BrokenPipeError:
            # Whoever read the answer has seen enough; Python would still flush to the closed pipe.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except (OSError, ValueError, MissingExtra) as error:
            _fail(_sentence(error))
        except MemoryError:
            _fail("there is not enough memory for this")
        except Exception as error:
            _fail(
                f"unexpected {type(error).__name__}: {_sentence(error)} "
                "(TOPSTORY_DEBUG=1 shows where)"
            )

    return guarded


def _fail(sentence: str) -> NoReturn:
    if os.environ.get("TOPSTORY_DEBUG") == "1":
        import traceback

        traceback.print_exc()
    _say(f"topstory: {sentence}", FAILED)


def _say(words: str, status: int) -> NoReturn:
    print(words, file=sys.stderr)
    raise typer.Exit(status) from None


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}"
    return " ".join(str(error).split())
