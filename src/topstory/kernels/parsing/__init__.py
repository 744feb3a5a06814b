"""Numbers and lines out of bytes."""
