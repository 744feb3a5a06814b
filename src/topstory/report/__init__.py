"""Tables, figures and one HTML page, drawn from records alone."""

from topstory.report.records import (
    Answer,
    AnswerPage,
    Cell,
    Curve,
    CurvePoint,
    Dot,
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
    "Answer",
    "AnswerPage",
    "Cell",
    "Curve",
    "CurvePoint",
    "Dot",
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
