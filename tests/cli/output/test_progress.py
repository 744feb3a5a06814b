"""What a terminal shows while a command works."""

from io import StringIO

from rich.console import Console
from tests.cli.output.terminal import printed, terminal

from topstory.cli.output.progress import work_bar


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
