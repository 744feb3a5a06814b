"""Scans: compiled passes over the columns of a whole log."""
