"""The folder of Parquet files that a log is kept in (docs/reference/log-format.md)."""
