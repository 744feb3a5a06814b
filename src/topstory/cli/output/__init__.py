"""Printing: consoles, tables, progress bars, numbers."""
