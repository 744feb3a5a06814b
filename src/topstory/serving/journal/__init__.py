"""One ordered, durable log of records, in SQLite or PostgreSQL."""
