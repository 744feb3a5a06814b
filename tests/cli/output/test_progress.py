"""What a terminal shows while a command works."""

import logging
from io import StringIO
from threading import Event

import pytest
from rich.console import Console
from tests.cli.output.terminal import printed, terminal

from topstory.cli.output.progress import PlainLines, count_bar, work_bar


def test_the_bar_shows_what_runs_and_how_far_it_is() -> None:
    console = terminal()
    with work_bar(console, "getting ready", events=True) as follow:
        follow("ucb", 100, 200)
        follow("linucb (hybrid)", 150, 200)
    assert "linucb (hybrid)" in printed(console)
    assert "75%" in printed(console)


def test_there_is_no_bar_where_there_is_no_terminal() -> None:
    console = Console(file=StringIO())
    with work_bar(console, "getting ready") as follow:
        follow("ucb", 100, 100)
    assert printed(console) == ""


class _Watched(StringIO):
    """A file that says when a line was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = Event()

    def flush(self) -> None:
        if self.getvalue():
            self.written.set()


def test_where_there_is_no_terminal_a_line_now_and_then_says_how_far_it_is() -> None:
    file = _Watched()
    lines = PlainLines(Console(file=file), "getting ready", every=0.01)
    lines.follow("ucb", 1, 4)
    with lines:
        assert file.written.wait(timeout=60)
    assert file.getvalue().startswith("ucb: 25 % after 0 s\n")


def test_an_amount_is_followed_without_a_terminal_too() -> None:
    with count_bar(Console(file=StringIO()), "exporting", 0) as follow:
        follow(3)


def test_a_long_compilation_is_told_of_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from topstory.kernels import compilation

    monkeypatch.setattr(compilation, "UNNOTICED_SECONDS", 0.0)
    listener = compilation.Compilations()
    with work_bar(Console(file=StringIO()), "getting ready"):
        for _ in range(2):  # one within the other
            listener.on_start(None)
        for _ in range(2):
            listener.on_end(None)
    assert capsys.readouterr().err.count("Compiling kernels") == 1
    logging.getLogger("topstory.kernels").info("nobody listens any more")
    assert capsys.readouterr().err == ""
