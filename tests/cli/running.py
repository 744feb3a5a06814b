"""Commands run in this process, and what they printed."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from typer.testing import CliRunner, Result

from topstory.cli.app import app


def run(*arguments: object, status: int = 0) -> Result:
    """The command's outcome, after checking its exit status."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == status, (result.exit_code, result.output, result.exception)
    return result


def answer(*arguments: object) -> Any:
    """What the command prints with --json: the document and nothing else."""
    return msgspec.json.decode(run(*arguments, "--json").stdout)


def words(text: str) -> str:
    """Text without the frame and the line breaks that a panel puts into it."""
    return re.sub(r"[\s│╭╮╰╯─]+", " ", text)
