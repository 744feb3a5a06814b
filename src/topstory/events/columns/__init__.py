"""The parts of a log in memory, one file each."""
