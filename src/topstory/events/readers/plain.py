"""Our own plain layout, in three kinds of file (docs/importing.md)."""

from topstory.events.readers.plain_csv import CsvReader
from topstory.events.readers.plain_jsonl import JsonlReader
from topstory.events.readers.plain_parquet import ParquetReader

READERS = (JsonlReader(), CsvReader(), ParquetReader())
