"""What a terminal shows: the bar and the loud panel."""

from io import StringIO

from rich.console import Console

from topstory.cli.output.progress import Bar
from topstory.cli.output.tables import show_warning


def terminal() -> Console:
    return Console(file=StringIO(), force_terminal=True, width=80)


def said(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_a_warning_is_a_panel_on_a_terminal() -> None:
    console = terminal()
    show_warning("the log's articles were not shown uniformly at random", console)
    assert "╭" in said(console)
    assert "not shown uniformly" in said(console)
    assert "\x1b[1;31m" in said(console)


def test_the_bar_shows_what_runs_and_how_far_it_is() -> None:
    console = terminal()
    with Bar(console, replays=2, events=100) as bar:
        bar.next("ucb")(100, 100)
        bar.next("linucb (hybrid)")(50, 100)
    assert "linucb (hybrid)" in said(console)
    assert "75%" in said(console)


def test_there_is_no_bar_where_there_is_no_terminal() -> None:
    console = Console(file=StringIO())
    with Bar(console, replays=1, events=100) as bar:
        bar.next("ucb")(100, 100)
    assert said(console) == ""
