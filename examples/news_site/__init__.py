"""A news site: an export as a warehouse gives it, and what to do with it."""
