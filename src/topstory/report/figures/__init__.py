"""The interactive figures, as data for plotly.js."""

import msgspec

from topstory.report.figures.ctr_over_time import over_time
from topstory.report.figures.data_sizes import by_size
from topstory.report.figures.figure import INK, Figure, Panel, Spec
from topstory.report.figures.largest_membership import memberships
from topstory.report.figures.lifted_articles import lifted
from topstory.report.figures.payoff_delays import by_delay
from topstory.report.figures.tuning_curves import tuning
from topstory.report.records import Report
from topstory.report.wording import worded

__all__ = ["INK", "Figure", "Panel", "Spec", "figures"]


def figures(report: Report) -> list[Figure]:
    """All figures in the paper's order, without those that have nothing to draw."""
    found = [
        tuning(report),
        lifted(report),
        by_size(report),
        memberships(report),
        over_time(report),
        by_delay(report),
    ]
    return [_worded(figure, report.binary) for figure in found if figure is not None]


def _worded(figure: Figure, binary: bool) -> Figure:
    """Where payoffs are not clicks, no text of the figure says so."""
    if binary:
        return figure
    text = worded(msgspec.json.encode(figure).decode(), binary)
    return msgspec.json.decode(text, type=Figure)
