"""The folder of Parquet files that a log is kept in (docs/log-format.md)."""
