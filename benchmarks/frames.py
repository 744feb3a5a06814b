"""Polars' own way with Yahoo's text: what a table library makes of it."""

from __future__ import annotations

from pathlib import Path

NOTE = (
    "Polars splits lines at spaces into columns of text and makes numbers of those that hold "
    "features, on all cores. That works because every pool here has 20 articles; it finds "
    "neither pools nor bad rows."
)


def parse(path: Path) -> int:
    """Every number a float; how many lines there are."""
    import polars as pl

    table = pl.read_csv(path, separator=" ", has_header=False, quote_char=None, infer_schema=False)
    first = table.row(0)
    features = [name for name, word in zip(table.columns, first, strict=True) if word[1:2] == ":"]
    whole = [table.columns[0], table.columns[2]]
    numbers = table.with_columns(
        pl.col(features).str.slice(2).cast(pl.Float64), pl.col(whole).cast(pl.Int64)
    )
    return numbers.height
