"""Raw categories to a unit vector."""
