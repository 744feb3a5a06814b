"""topstory's own plain layout: JSON lines, CSV and Parquet."""
