"""Examples that start from data as people have it."""
