"""Tables, figures and one HTML page, drawn from records alone."""

from topstory.report.records import (
    Cell,
    Curve,
    CurvePoint,
    Histogram,
    Lifted,
    LogDescription,
    Number,
    Report,
    Row,
    Scatter,
    Series,
    Table1,
)

__all__ = [
    "Cell",
    "Curve",
    "CurvePoint",
    "Histogram",
    "Lifted",
    "LogDescription",
    "Number",
    "Report",
    "Row",
    "Scatter",
    "Series",
    "Table1",
]
