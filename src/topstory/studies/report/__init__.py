"""A study's results as records for the report."""
