"""Decide, learn and edit, without HTTP."""
