"""Tables, figures, one HTML file: what is drawn from records, and from nothing else."""

from topstory.report.records import (
    Cell,
    Curve,
    CurvePoint,
    Histogram,
    Lifted,
    LogFacts,
    Number,
    Report,
    Ridge,
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
    "LogFacts",
    "Number",
    "Report",
    "Ridge",
    "Row",
    "Scatter",
    "Series",
    "Table1",
]
