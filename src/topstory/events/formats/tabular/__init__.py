"""Tables of columns: CSV and Arrow."""
