"""The records that commands print: `--json` encodes them, tables are drawn from them."""
