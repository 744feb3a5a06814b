"""API keys, signed decision ids, and the files that hold secrets."""
