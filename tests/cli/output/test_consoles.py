"""Warnings on a terminal."""

from tests.cli.output.terminal import printed, terminal

from topstory.cli.output.consoles import print_warning


def test_a_warning_is_a_panel_on_a_terminal() -> None:
    console = terminal()
    message = "the log's articles were not shown uniformly at random"
    print_warning(message, console, "not uniform")
    assert "╭" in printed(console)
    assert "not shown uniformly" in printed(console)
    assert "\x1b[1;31m" in printed(console)
