"""Your own columns: a mapping says what each is (docs/guides/your-data.md)."""
