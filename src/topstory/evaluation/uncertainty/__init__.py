"""How sure a result is: over clicks, learning paths, many comparisons and other days."""
