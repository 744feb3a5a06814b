"""Printing: consoles, tables, progress, warnings, numbers."""
