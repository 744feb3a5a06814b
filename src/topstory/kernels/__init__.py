"""The arithmetic, compiled: arrays in, arrays out; no files, no hidden random numbers."""
